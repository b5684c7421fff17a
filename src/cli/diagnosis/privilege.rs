//! What `keep doctor` says of privilege: what was tried with it, what would give it, and which settings of the kernel keep a
//! program from the person's other programs.

use platform::confine::{Plan, Support};
use platform::machine::Setting;
use platform::powers::{Power, Standing};
use platform::trial::Trial;

use super::finding::{Area, Finding, finding};

const NEEDED: &str = "root: sudo keep watch; sudo keep doctor tries it";

/// First whether there is any, then what was tried with it, then what would hold what is left of it.
pub fn findings(standing: Standing, powers: &[(Power, Trial)], confinement: Support) -> Vec<Finding> {
    let whole = finding(Area::Privilege, "privilege", "it is there at the start, and given up before the tree is read");
    let (works, detail, raise) = match standing {
        Standing::Root => (true, "by root", None),
        Standing::Capabilities => (true, "by capabilities of the program's file (setcap)", None),
        Standing::None => {
            (false, "started without", Some("sudo keep watch, or setcap: docs/hardening.md compares them"))
        }
        Standing::Absent => (false, "this version makes use of none on this system", Some("Linux")),
    };
    let (detail, raise) = (Some(detail.to_owned()), raise.map(str::to_owned));
    let mut all = vec![Finding { works: Some(works), detail, raise, ..whole }];
    all.extend(powers.iter().map(|(power, trial)| tried(*power, trial, standing)));
    if standing != Standing::Absent {
        all.push(guardian(confinement));
    }
    all
}

/// Its name, what it is good for, what happens without, and what would raise it where there is privilege.
const fn power(power: Power) -> (&'static str, &'static str, &'static str, &'static str) {
    match power {
        Power::WholeFileSystem => (
            "one_mark",
            "one mark covers all folders, and tells who made or moved a name",
            "each folder has a mark of its own, as without privilege",
            "ext4, xfs, tmpfs, or the top volume of btrfs",
        ),
        Power::HeldOpens => (
            "held_opens",
            "--hold: opening a protected file waits for your answer",
            "changes are undone and not held",
            "Linux with permission events (CONFIG_FANOTIFY_ACCESS_PERMISSIONS)",
        ),
        Power::ProcessHandles => (
            "writer",
            "whoever opens a protected file is named for certain",
            "who wrote is not known, or only likely",
            "Linux 5.15 or later",
        ),
        Power::ProcessFeed => (
            "processes",
            "who renames and ends at once is named by what was known of it before",
            "it is unknown who did it",
            "Linux with the process connector (CONFIG_PROC_EVENTS), outside of containers",
        ),
        Power::ImmutableFlag => (
            "lock_flag",
            "--lock: the kernel refuses every change of protected files, root's too",
            "files are not locked",
            "CAP_LINUX_IMMUTABLE, and a file system with flags: ext4, xfs, btrfs, tmpfs from Linux 6.0 on",
        ),
    }
}

fn tried(tried: Power, trial: &Trial, standing: Standing) -> Finding {
    let (name, promise, without, raise) = power(tried);
    let plain = finding(Area::Privilege, name, promise);
    match trial {
        Trial::Works => Finding { works: Some(true), ..plain },
        Trial::Fails(reason) => {
            let raise = if standing == Standing::None { NEEDED } else { raise };
            let detail = Some(format!("{reason}; {without}"));
            Finding { works: Some(false), detail, raise: Some(raise.to_owned()), ..plain }
        }
    }
}

/// Nothing is tried: what it is confined by a files worker has shown, in its own rows.
fn guardian(support: Support) -> Finding {
    let plain = finding(
        Area::Privilege,
        "guardian",
        "the one process that keeps privilege is confined: no file is opened, no program run",
    );
    let missing = !Plan::new(support).is_whole();
    Finding {
        works: missing.then_some(false),
        detail: Some(match (support.landlock, support.filter) {
            (Some(version), true) => format!("there are Landlock {version} and a filter of system calls for it"),
            (Some(_), false) => "there is no filter of system calls for this processor or kernel".to_owned(),
            (None, true) => "there is no Landlock".to_owned(),
            (None, false) => "there is neither Landlock nor a filter of system calls".to_owned(),
        }),
        raise: missing
            .then(|| "Linux 5.13 or later with filters of system calls, started with landlock among lsm=".to_owned()),
        ..plain
    }
}

/// What is said of a setting.
pub fn setting(setting: Setting, value: Option<u64>) -> Finding {
    let name = setting.name();
    let (row, promise, works, missing, raise) = match setting {
        Setting::Tracing => (
            "tracing",
            "a program cannot take over another of yours, such as the terminal, by tracing it",
            value.is_some_and(|value| value >= 1),
            "this kernel has no Yama, so it can",
            format!("sudo sysctl {name}=1"),
        ),
        Setting::KeyPushing => (
            "key_pushing",
            "a program cannot push keys into the terminal it was started in",
            value == Some(0),
            "this kernel lets every program do it",
            format!("sudo sysctl {name}=0"),
        ),
    };
    let raise = match (works, value) {
        (true, _) => None,
        (false, Some(_)) => Some(raise),
        (false, None) if setting == Setting::Tracing => Some("a kernel with yama among lsm=".to_owned()),
        (false, None) => Some("Linux 6.2 or later".to_owned()),
    };
    let detail = Some(value.map_or_else(|| missing.to_owned(), |value| format!("{name} is {value}")));
    Finding { works: Some(works), detail, raise, ..finding(Area::System, row, promise) }
}
