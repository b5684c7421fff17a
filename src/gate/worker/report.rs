//! What gate and worker tell each other before the first job.

use platform::confine::{Attempt, Axis, Means, Plan, Support};
use serde::{Deserialize, Serialize};

/// What the worker is told first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The gate's process.
    pub parent: u32,
    /// Device and inode of the root.
    pub root: (u64, u64),
    /// Whether to go on though something is missing.
    pub best_effort: bool,
    /// Paths that it has to fail to read.
    pub outside: Vec<Vec<u8>>,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Report {
    /// It is ready.
    Confined(Confinement),
    /// It is not, and why.
    Refused(String),
}

/// What is in force for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// Version of Landlock's interface; `None` without it.
    pub landlock: Option<u32>,
    /// Whether its system calls are filtered.
    pub filter: bool,
    /// Whether its system is one that has such means.
    pub is_expected: bool,
    /// What it tried.
    pub tried: Vec<Tried>,
}

/// Something it tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The name of what it is kept from.
    pub axis: String,
    /// Whether Landlock was to refuse it; else the filter.
    pub by_landlock: bool,
    /// What it was.
    pub what: String,
    /// Whether it was refused.
    pub was_refused: bool,
}

impl Confinement {
    /// From what the worker's own process has and tried.
    pub fn new(support: Support, attempts: Vec<Attempt>) -> Self {
        let tried = attempts.into_iter().map(|attempt| Tried {
            axis: attempt.axis.name().to_owned(),
            by_landlock: attempt.means == Means::Landlock,
            what: attempt.what,
            was_refused: attempt.was_refused,
        });
        let Support { landlock, filter, is_expected } = support;
        Self { landlock, filter, is_expected, tried: tried.collect() }
    }

    fn plan(&self) -> Plan {
        Plan::new(Support { landlock: self.landlock, filter: self.filter, is_expected: self.is_expected })
    }

    /// Whether what was to refuse it is in force.
    pub fn covers(&self, tried: &Tried) -> bool {
        if tried.by_landlock { self.landlock.is_some() } else { self.filter }
    }

    /// What it was able to do although it is confined as planned; also if it has less than the plan, or tried nothing.
    pub fn unproven(&self, plan: &Plan) -> Option<String> {
        if self.plan() != *plan {
            return Some("do without what this process has".to_owned());
        }
        for (is_used, by_landlock, name) in
            [(self.landlock.is_some(), true, "Landlock"), (self.filter, false, "the filter")]
        {
            if is_used && !self.tried.iter().any(|tried| tried.by_landlock == by_landlock) {
                return Some(format!("not be seen to be refused by {name}"));
            }
        }
        self.tried.iter().find(|tried| self.covers(tried) && !tried.was_refused).map(|tried| tried.what.clone())
    }

    /// The names of what confines it; `None` if nothing does.
    pub fn means(&self) -> Option<String> {
        match (self.landlock, self.filter) {
            (Some(version), true) => Some(format!("Landlock (version {version}) and a filter of system calls")),
            (Some(version), false) => Some(format!("Landlock (version {version})")),
            (None, true) => Some("a filter of system calls".to_owned()),
            (None, false) => None,
        }
    }

    /// What confines it, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let Some(means) = self.means() else {
            return vec!["files worker: confined by its own checks of paths alone".to_owned()];
        };
        let refused: Vec<&str> =
            self.tried.iter().filter(|tried| tried.was_refused).map(|tried| tried.what.as_str()).collect();
        vec![format!("files worker: {means}; tried and refused: {}", refused.join(", "))]
    }

    /// What nothing keeps it from, in lines for people.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.plan().missing();
        if missing.len() == Axis::all().count() {
            return vec!["nothing but its own checks of paths keeps the files worker inside the root".to_owned()];
        }
        missing.into_iter().map(|axis| format!("nothing keeps the files worker from {}", axis.what())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(landlock: Option<u32>, filter: bool, refused: [bool; 2]) -> Confinement {
        let tried = |axis: Axis, by_landlock, what: &str, was_refused| Tried {
            axis: axis.name().to_owned(),
            by_landlock,
            what: what.to_owned(),
            was_refused,
        };
        let tried = vec![tried(Axis::Read, true, "list /", refused[0]), tried(Axis::Tcp, false, "call", refused[1])];
        Confinement { landlock, filter, is_expected: true, tried }
    }

    #[test]
    fn what_was_not_refused_is_unproven_only_where_something_was_to_refuse_it() {
        for (landlock, filter, refused, expected) in [
            (Some(7), true, [true, true], None),
            (Some(7), true, [false, true], Some("list /")),
            (Some(7), true, [true, false], Some("call")),
            (None, true, [false, true], None),
            (Some(7), false, [true, false], None),
        ] {
            let confinement = confinement(landlock, filter, refused);
            let plan = confinement.plan();
            assert_eq!(confinement.unproven(&plan).as_deref(), expected, "{landlock:?} {filter} {refused:?}");
        }
    }

    #[test]
    fn a_worker_that_has_less_than_the_gate_or_tried_nothing_is_not_believed() {
        let whole = confinement(Some(7), true, [true, true]);
        let less = confinement(None, true, [true, true]);
        assert!(less.unproven(&whole.plan()).is_some());
        let silent = Confinement { tried: Vec::new(), ..whole.clone() };
        assert!(silent.unproven(&whole.plan()).is_some_and(|what| what.contains("Landlock")));
    }

    #[test]
    fn people_are_told_what_holds_it_and_what_nothing_holds() {
        let whole = confinement(Some(7), true, [true, true]);
        assert_eq!(
            whole.lines(),
            ["files worker: Landlock (version 7) and a filter of system calls; tried and refused: list /, call"]
        );
        assert!(whole.missing().is_empty());
        let part = confinement(None, true, [false, true]);
        assert_eq!(part.lines(), ["files worker: a filter of system calls; tried and refused: call"]);
        assert!(part.missing().contains(&"nothing keeps the files worker from reading outside the folder".to_owned()));
        let none = Confinement { landlock: None, filter: false, is_expected: false, tried: Vec::new() };
        assert_eq!((none.lines().len(), none.missing().len()), (1, 1));
    }
}
