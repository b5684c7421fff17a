//! What the guardian stands on: everything it has of the process that started it by which somebody else than root could
//! stop or starve it.
//!
//! A shell's limits, processors, priority and control group are what any process of its user made of them, and sudo passes
//! them on. So a guardian that is root sets its own, before it gives anything up, and goes to the top of each hierarchy of
//! control groups, where nothing can be frozen, killed or limited.
//! Promise: [`stand`] returns without error only if nobody but root can write to a control group the process is in.
//! Limit: of a process that is not root nothing can be changed here; it can be killed by its user anyway. Without
//! CAP_SYS_RESOURCE (a container) a limit cannot be lifted: where there is one, there is no guardian.
//! Source: setrlimit(2), sched(7), proc_pid_oom_score_adj(5), cgroups(7); Documentation/admin-guide/cgroup-v2.rst,
//! "Delegation": who may write to a group's `cgroup.procs`, `cgroup.kill` and `cgroup.freeze` is its directory's owner.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::super::mounts;
use super::super::sys::scheduling;

/// Why others than root have a hold on the process.
#[derive(Debug, thiserror::Error)]
pub(super) enum FootingError {
    #[error("cannot {operation}: {source}")]
    Call { operation: &'static str, source: io::Error },
    #[error("the control group {} can be stopped by others than root", .0.display())]
    Group(PathBuf),
}

fn call<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> FootingError {
    move |source| FootingError::Call { operation, source: source.into() }
}

/// As root, with all its capabilities.
pub(super) fn stand() -> Result<(), FootingError> {
    for resource in [Resource::Cpu, Resource::As, Resource::Rss] {
        setrlimit(resource, Rlimit { current: None, maximum: None }).map_err(call("lift the limits it was given"))?;
    }
    // Below what root once gave it only with CAP_SYS_RESOURCE, which root in a container may lack.
    let score = |score| fs::write("/proc/self/oom_score_adj", score);
    score("-1000").or_else(|_| score("0")).map_err(call("be no first one to be killed for memory"))?;
    scheduling::be_ordinary().map_err(call("be scheduled like others"))?;
    setpriority_process(None, 0).map_err(call("be scheduled like others"))?;
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    sched_setaffinity(None, &all).map_err(call("run on every processor"))?;
    leave_groups()
}

fn leave_groups() -> Result<(), FootingError> {
    let text = fs::read("/proc/self/mountinfo").map_err(call("read where control groups are mounted"))?;
    let mounted: Vec<Hierarchy> = hierarchies(&text).collect();
    for hierarchy in &mounted {
        // One that is mounted read-only, say in a container, is looked at below.
        let _ = fs::write(path(&hierarchy.point).join("cgroup.procs"), "0");
    }
    let text = fs::read("/proc/self/cgroup").map_err(call("read its control groups"))?;
    for (controllers, group) in memberships(&text) {
        for hierarchy in mounted.iter().filter(|hierarchy| hierarchy.is_of(controllers)) {
            stands_firm(path(&hierarchy.point), path(group))?;
        }
    }
    Ok(())
}

/// Where control groups are mounted.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    point: Vec<u8>,
    /// Of the first version of control groups: its options, with the names of its controllers among them.
    options: Option<Vec<u8>>,
}

impl Hierarchy {
    /// Whether this is what a process's memberships name so. The second version has no controllers there.
    fn is_of(&self, controllers: &[u8]) -> bool {
        let Some(options) = &self.options else { return controllers.is_empty() };
        !controllers.is_empty()
            && controllers
                .split(|&byte| byte == b',')
                .all(|one| options.split(|&byte| byte == b',').any(|it| it == one))
    }
}

/// Those in the text of `/proc/self/mountinfo`.
fn hierarchies(text: &[u8]) -> impl Iterator<Item = Hierarchy> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let point = mounts::unescape(fields.nth(4)?);
        // Optional fields end with a dash; the type, what was mounted, and the options of the file system come after it.
        let mut after = fields.skip_while(|field| *field != b"-").skip(1);
        match after.next()? {
            b"cgroup2" => Some(Hierarchy { point, options: None }),
            b"cgroup" => Some(Hierarchy { point, options: Some(after.nth(1)?.to_vec()) }),
            _ => None,
        }
    })
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Whether only root has a say in the group below the mount point, and in every group above it.
fn stands_firm(point: &Path, group: &Path) -> Result<(), FootingError> {
    let own = point.join(group.strip_prefix("/").unwrap_or(group));
    for above in own.ancestors().take_while(|above| above.starts_with(point)) {
        let is_roots = |path: PathBuf| match fs::symlink_metadata(path) {
            Ok(status) => status.uid() == 0 && status.mode() & 0o022 == 0,
            // Not every hierarchy has every file, and what lies outside of a namespace cannot be seen, nor written to from
            // in here.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let mut decisive = ["", "cgroup.procs", "cgroup.kill", "cgroup.freeze", "freezer.state"].iter();
        if !decisive.all(|name| is_roots(above.join(name))) {
            return Err(FootingError::Group(above.to_owned()));
        }
    }
    Ok(())
}

/// The lines of `/proc/PID/cgroup`: the controllers, and the group.
fn memberships(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':').skip(1);
        fields.next().zip(fields.next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_are_taken_whatever_their_paths_are() {
        let text = b"9:name=systemd:/\n3:cpu,cpuacct:/a:b/c d\n0::/user.slice\nnonsense\n";
        let all: Vec<_> = memberships(text).collect();
        let wanted: [(&[u8], &[u8]); 3] =
            [(b"name=systemd", b"/"), (b"cpu,cpuacct", b"/a:b/c d"), (b"", b"/user.slice")];
        assert_eq!(all, wanted);
    }

    #[test]
    fn both_versions_are_found_where_they_are_mounted() {
        let text = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            40 31 0:37 / /sys/fs/cgroup/sys\\040temd rw shared:9 master:2 - cgroup systemd rw,xattr,name=systemd\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nnonsense\n1 2 3 4 5 6 - cgroup\n";
        let all: Vec<_> = hierarchies(text).collect();
        let points: Vec<_> = all.iter().map(|hierarchy| hierarchy.point.as_slice()).collect();
        let wanted: [&[u8]; 3] = [b"/sys/fs/cgroup/cpu,cpuacct", b"/sys/fs/cgroup/sys temd", b"/sys/fs/cgroup/unified"];
        assert_eq!(points, wanted);
        let of = |controllers: &[u8]| all.iter().map(|hierarchy| hierarchy.is_of(controllers)).collect::<Vec<_>>();
        assert_eq!(of(b"cpu,cpuacct"), [true, false, false]);
        assert_eq!(of(b"name=systemd"), [false, true, false]);
        assert_eq!((of(b""), of(b"cpu,memory")), (vec![false, false, true], vec![false; 3]));
    }

    #[test]
    fn a_group_of_somebody_else_is_found_wherever_it_is_above() {
        let folder = tempfile::tempdir().expect("a folder");
        let group = folder.path().join("user.slice/own/scope");
        fs::create_dir_all(&group).expect("makes");
        fs::write(group.join("cgroup.procs"), "").expect("writes");
        let is_firm = || stands_firm(folder.path(), Path::new("/user.slice/own/scope")).is_ok();
        if !crate::privilege::is_root() {
            assert!(!is_firm(), "all of it is ours");
            return;
        }
        assert!(is_firm() && stands_firm(folder.path(), Path::new("/")).is_ok());
        let own = folder.path().join("user.slice/own");
        std::os::unix::fs::chown(&own, Some(65_534), None).expect("chowns");
        let error = stands_firm(folder.path(), Path::new("/user.slice/own/scope")).expect_err("somebody else's");
        assert!(matches!(error, FootingError::Group(group) if group == own));
        std::os::unix::fs::chown(&own, Some(0), None).expect("chowns");
        std::os::unix::fs::chown(group.join("cgroup.procs"), Some(65_534), None).expect("chowns");
        assert!(!is_firm(), "others can take it in and out");
    }
}
