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
    /// Whether it is in a sandbox of Seatbelt's.
    pub seatbelt: bool,
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
    /// The name of what was to refuse it.
    pub by: String,
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
            by: attempt.means.name().to_owned(),
            what: attempt.what,
            was_refused: attempt.was_refused,
        });
        let Support { landlock, filter, seatbelt, is_expected } = support;
        Self { landlock, filter, seatbelt, is_expected, tried: tried.collect() }
    }

    /// What its own process has.
    pub fn plan(&self) -> Plan {
        let Self { landlock, filter, seatbelt, is_expected, .. } = *self;
        Plan::new(Support { landlock, filter, seatbelt, is_expected })
    }

    /// Whether what was to refuse it is in force.
    pub fn covers(&self, tried: &Tried) -> bool {
        Means::parse(&tried.by).is_some_and(|means| self.plan().uses(means))
    }

    /// What it was able to do although it is confined as planned; also if it has less than the plan, or tried nothing.
    pub fn unproven(&self, plan: &Plan) -> Option<String> {
        if self.plan() != *plan {
            return Some("do without what this process has".to_owned());
        }
        for means in Means::ALL.into_iter().filter(|&means| plan.uses(means)) {
            if !self.tried.iter().any(|tried| tried.by == means.name()) {
                return Some(format!("not be seen to be refused by {}", said(means)));
            }
        }
        self.tried.iter().find(|tried| self.covers(tried) && !tried.was_refused).map(|tried| tried.what.clone())
    }

    /// The names of what confines it; `None` if nothing does.
    pub fn means(&self) -> Option<String> {
        let landlock = self.landlock.map(|version| format!("Landlock (version {version})"));
        let filter = self.filter.then(|| "a filter of system calls".to_owned());
        let seatbelt = self.seatbelt.then(|| "Seatbelt".to_owned());
        let all: Vec<String> = [landlock, filter, seatbelt].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(" and "))
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

fn said(means: Means) -> &'static str {
    match means {
        Means::Landlock => "Landlock",
        Means::Filter => "the filter",
        Means::Seatbelt => "Seatbelt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(landlock: Option<u32>, filter: bool, refused: [bool; 2]) -> Confinement {
        let tried = |axis: Axis, by: Means, what: &str, was_refused| Tried {
            axis: axis.name().to_owned(),
            by: by.name().to_owned(),
            what: what.to_owned(),
            was_refused,
        };
        let tried = vec![
            tried(Axis::Read, Means::Landlock, "list /", refused[0]),
            tried(Axis::Tcp, Means::Filter, "call", refused[1]),
        ];
        Confinement { landlock, filter, seatbelt: false, is_expected: true, tried }
    }

    /// As on a system that has Seatbelt and nothing else.
    fn in_a_sandbox(was_refused: bool) -> Confinement {
        let tried = |axis: Axis, what: &str, was_refused| Tried {
            axis: axis.name().to_owned(),
            by: Means::Seatbelt.name().to_owned(),
            what: what.to_owned(),
            was_refused,
        };
        let tried = vec![tried(Axis::Read, "list /", true), tried(Axis::Signals, "signal its parent", was_refused)];
        Confinement { landlock: None, filter: false, seatbelt: true, is_expected: true, tried }
    }

    #[test]
    fn a_sandbox_is_believed_when_each_attempt_was_refused_and_not_otherwise() {
        let whole = in_a_sandbox(true);
        assert_eq!(whole.unproven(&whole.plan()), None);
        let open = in_a_sandbox(false);
        assert_eq!(open.unproven(&open.plan()).as_deref(), Some("signal its parent"));
        let silent = Confinement { tried: Vec::new(), ..in_a_sandbox(true) };
        assert!(silent.unproven(&silent.plan()).is_some_and(|what| what.contains("Seatbelt")));
        let none = Confinement { seatbelt: false, ..in_a_sandbox(true) };
        assert!(none.unproven(&whole.plan()).is_some(), "the gate's process could have had one");
    }

    #[test]
    fn a_sandbox_is_named_and_so_is_what_it_does_not_hold() {
        let lines = ["files worker: Seatbelt; tried and refused: list /, signal its parent"];
        assert_eq!(in_a_sandbox(true).lines(), lines);
        let missing = ["nothing keeps the files worker from running code that it wrote into its memory"];
        assert_eq!(in_a_sandbox(true).missing(), missing);
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
        let none =
            Confinement { landlock: None, filter: false, seatbelt: false, is_expected: false, tried: Vec::new() };
        assert_eq!((none.lines().len(), none.missing().len()), (1, 1));
    }
}
