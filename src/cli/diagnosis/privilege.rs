//! What `keep doctor` says of privilege: what was tried with it, what would give it, and which settings of the kernel keep a
//! program from the person's other programs.

use platform::confine::Support;
use platform::machine::Setting;
use platform::powers::{Power, Standing};
use platform::trial::Trial;

use super::Measured;
use super::finding::{Area, Finding, finding};

const NEEDED: &str = "root: sudo keep watch; sudo keep doctor tries it";

/// First whether there is any, then what was tried with it, then what would hold what is left of it.
pub fn findings(measured: &Measured) -> Vec<Finding> {
    let standing = measured.standing;
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
    all.extend(measured.powers.iter().map(|(power, trial)| tried(*power, trial, standing)));
    if standing != Standing::Absent {
        all.push(guardian(&measured.guardian, measured.means, standing));
        all.push(hold(&measured.hold, &measured.guardian, standing));
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

/// One was made, if that could be.
fn guardian(made: &Result<(), String>, means: Support, standing: Standing) -> Finding {
    let plain = finding(
        Area::Privilege,
        "guardian",
        "the one process that keeps privilege is confined: no file is opened, no program run",
    );
    let by = match (means.landlock, means.filter) {
        (Some(version), true) => format!("one was made and tried it; Landlock {version}, a filter of system calls"),
        (None, true) => "one was made and tried it; a filter of system calls, without Landlock".to_owned(),
        (_, false) => "there is no filter of system calls for this processor or kernel".to_owned(),
    };
    match made {
        Ok(()) => Finding { works: Some(true), detail: Some(by), ..plain },
        Err(reason) => {
            let raise =
                if standing == Standing::None { NEEDED } else { "Linux 5.13 or later with filters of system calls" };
            let detail = Some(format!("{reason}; opens are not read, and files not locked"));
            Finding { works: Some(false), detail, raise: Some(raise.to_owned()), ..plain }
        }
    }
}

/// Everything that takes, in this tree.
fn hold(held: &Result<(), String>, guardian: &Result<(), String>, standing: Standing) -> Finding {
    let promise = "--hold works in this tree: writers wait, are told from readers, and fail when refused";
    let plain = finding(Area::Privilege, "hold", promise);
    let reason = match (held, guardian) {
        (Ok(()), Ok(())) => return Finding { works: Some(true), ..plain },
        (Err(reason), _) => reason.clone(),
        (_, Err(_)) => "there is no guardian to answer when the watch cannot".to_owned(),
    };
    let raise = if standing == Standing::None { NEEDED } else { "a tree on a file system of this machine's own" };
    let detail = Some(format!("{reason}; keep watch --hold does not start, but with --best-effort"));
    Finding { works: Some(false), detail, raise: Some(raise.to_owned()), ..plain }
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
