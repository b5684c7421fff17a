//! The thread that looks at openers whose program may be a trusted one.
//!
//! Promise: nobody waits for it but the opener; what it cannot tell, and what it has no room for, is not trusted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use platform::{HeldId, Writer};

use super::{Examined, Trusted, Wish};

/// Openers that wait to be looked at.
const MOST: usize = 256;

/// Looks at the process with this number, which started then.
pub type Examine = Box<dyn FnMut(u32, u64) -> Option<Examined> + Send>;

/// Where it is said whether the opener of this open is trusted.
pub type Report = Box<dyn Fn(HeldId, bool) + Send>;

/// An opener to be looked at.
struct Job {
    id: HeldId,
    pid: u32,
    started: u64,
    wish: Wish,
}

/// The entries, and the way to the thread; dropping it ends that after what it is at.
pub struct Vetting {
    trusted: Arc<Vec<Trusted>>,
    /// `None` if nothing is trusted.
    jobs: Option<SyncSender<Job>>,
}

impl Vetting {
    /// Starts the thread, if there is anything to be looked at.
    pub fn start(trusted: Vec<Trusted>, examine: Examine, report: Report) -> std::io::Result<Self> {
        let trusted = Arc::new(trusted);
        if trusted.is_empty() {
            return Ok(Self { trusted, jobs: None });
        }
        let (jobs, waiting) = sync_channel(MOST);
        let entries = Arc::clone(&trusted);
        thread::Builder::new().name("trust".to_owned()).spawn(move || run(&waiting, &entries, examine, &report))?;
        Ok(Self { trusted, jobs: Some(jobs) })
    }

    /// Nobody is trusted.
    pub fn none() -> Self {
        Self { trusted: Arc::default(), jobs: None }
    }

    /// Has the opener looked at, if its program may be a trusted one; `false` if it is not, or there is no room.
    pub fn look_at(&self, id: HeldId, by: &Writer, wish: Wish) -> bool {
        // What lies at its path there is not what lies there here.
        let Some(started) = by.program.started.filter(|_| !by.program.is_elsewhere) else { return false };
        let job = Job { id, pid: by.program.pid, started, wish };
        let may_be = self.trusted.iter().any(|entry| entry.is_about(&job.wish));
        may_be && self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok())
    }
}

fn run(jobs: &Receiver<Job>, trusted: &[Trusted], mut examine: Examine, report: &Report) {
    while let Ok(Job { id, pid, started, wish }) = jobs.recv() {
        let examined = examine(pid, started).filter(|examined| examined.influence.is_none());
        let is_it =
            |examined: Examined| trusted.iter().any(|entry| entry.is_about(&wish) && entry.digest == examined.digest);
        report(id, examined.is_some_and(is_it));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::rules::Rule;
    use crate::rules::glob::Glob;
    use platform::program::Influence;
    use platform::{Access, Certainty, Program};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    fn git() -> Trusted {
        Trusted {
            program: b"/usr/bin/git".to_vec(),
            digest: Digest::of(b"git"),
            may: vec![Access::Write],
            rules: vec![Rule::GitControl],
            paths: vec![Glob::compile(".git/**").expect("a glob")],
        }
    }

    fn wish() -> Wish {
        Wish {
            exe: b"/usr/bin/git".to_vec(),
            access: Access::Write,
            rule: Rule::GitControl,
            path: b".git/config".to_vec(),
        }
    }

    fn by(started: Option<u64>) -> Writer {
        let exe = Some(b"/usr/bin/git".to_vec());
        let program = Program { started, name: b"git".to_vec(), exe, ..Program::unknown(7) };
        Writer { program, ancestors: Vec::new(), certainty: Certainty::Certain }
    }

    /// What comes of looking at a process that is found to be this.
    fn vetted(examined: Option<Examined>) -> bool {
        let (reports, heard) = channel();
        let report: Report = Box::new(move |id, trusted| reports.send((id, trusted)).expect("is heard"));
        let vetting = Vetting::start(vec![git()], Box::new(move |_, _| examined.clone()), report).expect("starts");
        assert!(vetting.look_at(HeldId(3), &by(Some(1)), wish()));
        let (id, trusted) = heard.recv_timeout(Duration::from_secs(60)).expect("it is told");
        assert_eq!(id, HeldId(3));
        trusted
    }

    #[test]
    fn only_the_very_program_with_nobody_else_in_it_is_trusted() {
        let examined = |text: &str, influence| Some(Examined { digest: Digest::of(text.as_bytes()), influence });
        assert!(vetted(examined("git", None)));
        assert!(!vetted(examined("another", None)));
        assert!(!vetted(examined("git", Some(Influence::Tracer(1)))));
        assert!(!vetted(None), "it cannot be told");
    }

    #[test]
    fn who_is_not_listed_for_this_is_not_looked_at() {
        let vetting = Vetting::start(vec![git()], Box::new(|_, _| None), Box::new(|_, _| {})).expect("starts");
        assert!(!vetting.look_at(HeldId(1), &by(None), wish()), "nobody knows which process it is");
        let mut elsewhere = by(Some(1));
        elsewhere.program.is_elsewhere = true;
        assert!(!vetting.look_at(HeldId(1), &elsewhere, wish()), "its paths mean something else");
        for wish in [
            Wish { exe: b"/tmp/git".to_vec(), ..wish() },
            Wish { access: Access::Read, ..wish() },
            Wish { rule: Rule::Secrets, ..wish() },
            Wish { path: b"sub/.git/config".to_vec(), ..wish() },
        ] {
            assert!(!vetting.look_at(HeldId(1), &by(Some(1)), wish.clone()), "{wish:?}");
        }
        assert!(!Vetting::none().look_at(HeldId(1), &by(Some(1)), wish()));
    }

    #[test]
    fn openers_without_end_wait_only_so_many() {
        let (go, wait): (Sender<()>, _) = channel();
        let examine: Examine = Box::new(move |_, _| {
            let _until_it_may = wait.recv();
            None
        });
        let vetting = Vetting::start(vec![git()], examine, Box::new(|_, _| {})).expect("starts");
        let taken = (0..10 * MOST as u64).filter(|id| vetting.look_at(HeldId(*id), &by(Some(1)), wish())).count();
        assert!((MOST..=MOST + 1).contains(&taken), "{taken}");
        drop(go);
    }
}
