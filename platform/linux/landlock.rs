//! Landlock: what a plan takes away, taken away.
//!
//! Promise: every right the plan handles is in force when [`restrict`] returns `Ok`, by the crate's own word and without
//! its best effort. Source: landlock(7); the crate `landlock`.

use std::os::fd::AsFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::confine::{ConfineError, Plan, Right};
use crate::dir::Dir;

fn access(right: Right) -> AccessFs {
    match right {
        Right::Execute => AccessFs::Execute,
        Right::WriteFile => AccessFs::WriteFile,
        Right::ReadFile => AccessFs::ReadFile,
        Right::ReadDir => AccessFs::ReadDir,
        Right::RemoveDir => AccessFs::RemoveDir,
        Right::RemoveFile => AccessFs::RemoveFile,
        Right::MakeChar => AccessFs::MakeChar,
        Right::MakeDir => AccessFs::MakeDir,
        Right::MakeReg => AccessFs::MakeReg,
        Right::MakeSock => AccessFs::MakeSock,
        Right::MakeFifo => AccessFs::MakeFifo,
        Right::MakeBlock => AccessFs::MakeBlock,
        Right::MakeSym => AccessFs::MakeSym,
        Right::Refer => AccessFs::Refer,
        Right::Truncate => AccessFs::Truncate,
        Right::IoctlDev => AccessFs::IoctlDev,
        Right::ResolveUnix => AccessFs::ResolveUnix,
    }
}

fn all(rights: Vec<Right>) -> BitFlags<AccessFs> {
    rights.into_iter().map(access).collect()
}

/// Confines the calling thread to the folder, as the plan says.
pub(crate) fn restrict(plan: &Plan, folder: &Dir) -> Result<(), ConfineError> {
    put_in_force(plan, plan.handled(), Some(folder))
}

/// Confines the calling thread to no folder, but lets files be read: the kernel opens the file of a permission event in the
/// name of whoever reads the event, and would refuse the opener what the reader may not have.
pub(super) fn restrict_all_but_reading(plan: &Plan) -> Result<(), ConfineError> {
    put_in_force(plan, plan.handled().into_iter().filter(|right| !matches!(right, Right::ReadFile)).collect(), None)
}

fn put_in_force(plan: &Plan, handled: Vec<Right>, folder: Option<&Dir>) -> Result<(), ConfineError> {
    let failed = |error: RulesetError| ConfineError::Landlock(Box::new(error));
    let version = plan.support().landlock.and_then(|version| i32::try_from(version).ok()).unwrap_or(0);
    let abi = ABI::from(version);
    // The version is the kernel's own: whatever it then refuses is an error and not less confinement.
    let mut taken = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all(handled))
        .map_err(failed)?;
    let net = AccessNet::from_all(abi);
    if !net.is_empty() {
        taken = taken.handle_access(net).map_err(failed)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        taken = taken.scope(scopes).map_err(failed)?;
    }
    let status = taken
        .create()
        .and_then(|created| match folder {
            Some(folder) => created.add_rule(PathBeneath::new(folder.as_fd(), all(plan.below()))),
            None => Ok(created),
        })
        .and_then(|created| created.restrict_self())
        .map_err(failed)?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(ConfineError::Partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::Support;

    #[test]
    fn the_plan_handles_what_each_version_has_and_no_more() {
        for version in 1..=10 {
            let support = Support { landlock: Some(version), filter: true, seatbelt: false, is_expected: true };
            let plan = Plan::new(support);
            let abi = ABI::from(version as i32);
            assert_eq!(all(plan.handled()), AccessFs::from_all(abi), "version {version}");
            assert!(all(plan.handled()).contains(all(plan.below())), "version {version}");
        }
    }
}
