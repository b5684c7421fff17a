//! Rules: which paths are protected, by which rule, and what a change of them leads to.

pub mod assemble;
pub mod builtin;
pub mod file;
mod filter;
pub mod gitdir;
pub mod glob;
pub mod set;
pub mod yaml;
pub mod zone;

pub use assemble::{Flags, Rules, ScopeSource, assemble};
pub use set::{ExternalRoot, Parts, RuleSet, Scope, Target};

use std::fmt;

/// A rule, by the name questions and reports use. The order is the order of the table: the first that covers a path names
/// its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// `.env` files and `.envrc`.
    Secrets,
    /// Git's configuration, hooks and attributes, of this repository and of those inside it.
    GitControl,
    /// Pipelines of build services.
    CiConfig,
    /// Settings and instructions of coding agents.
    AgentConfig,
    /// Editor settings that run programs.
    EditorTasks,
    /// Hook managers' files.
    HookManagers,
    /// Where packages come from.
    PackageRegistry,
    /// `.cage.yaml` itself.
    CageConfig,
    /// Lockfiles.
    Lockfile,
    /// Dependency manifests; only when dependencies are frozen.
    DependencyManifest,
    /// The `protect:` entries of `.cage.yaml`.
    CageProtect,
    /// Whatever git would track outside the allowed area.
    OutOfScope,
}

impl Rule {
    /// Every rule, in the order of the table.
    pub const ALL: [Rule; 12] = [
        Rule::Secrets,
        Rule::GitControl,
        Rule::CiConfig,
        Rule::AgentConfig,
        Rule::EditorTasks,
        Rule::HookManagers,
        Rule::PackageRegistry,
        Rule::CageConfig,
        Rule::Lockfile,
        Rule::DependencyManifest,
        Rule::CageProtect,
        Rule::OutOfScope,
    ];

    /// The name in questions, reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Secrets => "secrets",
            Rule::GitControl => "git_control",
            Rule::CiConfig => "ci_config",
            Rule::AgentConfig => "agent_config",
            Rule::EditorTasks => "editor_tasks",
            Rule::HookManagers => "hook_managers",
            Rule::PackageRegistry => "package_registry",
            Rule::CageConfig => "cage_config",
            Rule::Lockfile => "lockfile",
            Rule::DependencyManifest => "dependency_manifest",
            Rule::CageProtect => "cage_protect",
            Rule::OutOfScope => "out_of_scope",
        }
    }

    /// The rule with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a change of a protected path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The change is named and kept.
    Report,
    /// The person is asked, and the path is put back unless the answer is yes.
    Restore,
}

impl Mode {
    /// The name in reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Report => "report",
            Mode::Restore => "restore",
        }
    }
}

/// The rule that names a path's changes, and what they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class {
    /// The first rule of the table that covers the path in the strongest mode.
    pub rule: Rule,
    /// Restore beats report.
    pub mode: Mode,
}

#[cfg(test)]
mod tests;
