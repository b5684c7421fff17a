//! Who starts a guardian is a process like any of its user's: what others made of it is not the guardian's.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, getpid, setpriority_process, setrlimit};

use crate::openers::{open, opened, until};
use crate::watch::Watch;
use crate::{Case, NOBODY};

pub const CASES: &[Case] = &[(
    "what_its_user_did_to_the_shell_neither_starves_nor_freezes_the_guardian",
    what_its_user_did_to_the_shell_neither_starves_nor_freezes_the_guardian,
)];

/// A control group of the user's, with this process in it.
struct Delegated {
    top: PathBuf,
    group: PathBuf,
}

impl Delegated {
    /// `None` where no such hierarchy is mounted, or nobody may make a group.
    fn enter(top: &str) -> Option<Self> {
        let top = PathBuf::from(top);
        let group = top.join(format!("keep-test-{}", std::process::id()));
        if !top.join("cgroup.procs").exists() || fs::create_dir(&group).is_err() {
            return None;
        }
        let delegated = Self { top, group };
        chown(&delegated.group, Some(NOBODY), Some(NOBODY)).expect("chowns");
        for entry in fs::read_dir(&delegated.group).expect("lists").flatten() {
            chown(entry.path(), Some(NOBODY), Some(NOBODY)).expect("chowns");
        }
        fs::write(delegated.group.join("cgroup.procs"), "0").ok()?;
        Some(delegated)
    }

    fn holds(&self, pid: u32) -> bool {
        let inside = fs::read_to_string(self.group.join("cgroup.procs")).expect("reads");
        inside.lines().any(|line| line.parse() == Ok(pid))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::write(self.top.join("cgroup.procs"), "0");
        // What is in it still ends soon.
        until("the group is empty", || fs::remove_dir(&self.group).is_ok());
    }
}

fn field(pid: u32, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).expect("reads");
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("{name} in {text}"))
        .trim()
        .to_owned()
}

fn what_its_user_did_to_the_shell_neither_starves_nor_freezes_the_guardian(dir: &Path) {
    let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"];
    let groups: Vec<_> = tops.iter().filter_map(|top| Delegated::enter(top)).collect();
    setpriority_process(None, 15).expect("may");
    // CAP_SYS_RESOURCE, which root in a container may lack.
    let capabilities = u64::from_str_radix(&field(std::process::id(), "status", "CapEff:"), 16).expect("a number");
    let may_lift = capabilities & (1 << 24) != 0;
    if may_lift {
        setrlimit(Resource::Cpu, Rlimit { current: Some(20), maximum: Some(20) }).expect("may");
    }
    fs::write("/proc/self/oom_score_adj", "1000").expect("may");
    let own = getpid().as_raw_nonzero().to_string();
    let done = |program: &str, words: &[&str]| {
        Command::new(program).args(words).arg(&own).output().is_ok_and(|output| output.status.success())
    };
    let hindered = [done("taskset", &["-c", "-p", "0"]), done("chrt", &["-i", "-p", "0"])];

    let mut watch = Watch::start("hold", dir);
    let guardian = watch.guardian;
    assert_eq!(field(guardian, "limits", "Max cpu time"), "unlimited            unlimited            seconds");
    let score = if may_lift { "-1000" } else { "0" };
    assert_eq!(fs::read_to_string(format!("/proc/{guardian}/oom_score_adj")).expect("reads").trim(), score);
    assert_eq!(field(guardian, "status", "Cpus_allowed_list:"), field(1, "status", "Cpus_allowed_list:"));
    let stat = fs::read_to_string(format!("/proc/{guardian}/stat")).expect("reads");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    // proc_pid_stat(5): the state is the third; nice is the 19th, the policy the 41st.
    assert_eq!((fields[19 - 3], fields[41 - 3]), ("0", "0"), "one processor, idle: {hindered:?}");
    for group in &groups {
        assert!(group.holds(watch.process.id()), "the watch is the user's");
        assert!(!group.holds(guardian), "{} can be frozen by its user", group.group.display());
    }
    let writer = open("append", &dir.join(".env"));
    let id = watch.next("held");
    watch.process.kill().expect("kills");
    assert!(!opened(writer), "{id} was refused");
    watch.process.wait().expect("ends");
    until("the guardian ends", || !platform::process::exists(guardian));
    setpriority_process(None, 0).expect("may");
    drop(groups);
}
