//! A watch as small as can be: a guardian, root given up, `.env` marked, writers held until it is told otherwise.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use platform::guardian::note::Note;
use platform::guardian::{Guardian, OnDeath, Settings, Word};
use platform::openings::{ByNumber, Openings, group};
use platform::{Access, Answered, Dir, Doorkeeper, HeldId, Opening, Privileged, Ruling, Verdict, Wanted, privilege};
use rustix::process::{Pid, Signal, kill_process};

use crate::{NOBODY, openers, own_program, put};

struct Door {
    say: Sender<String>,
    holds: bool,
}

impl Doorkeeper for Door {
    fn rule(&self, opening: &Opening) -> Ruling {
        if self.holds && opening.access == Access::Write { Ruling::Hold } else { Ruling::Pass }
    }

    fn held(&self, id: HeldId, _opening: Opening) {
        let _ = self.say.send(format!("held {}", id.0));
    }

    fn gone(&self, id: HeldId) {
        let _ = self.say.send(format!("gone {}", id.0));
    }

    fn relieved(&self, id: HeldId) {
        let _ = self.say.send(format!("relieved {}", id.0));
    }

    fn crowded(&self) {
        let _ = self.say.send("crowded".into());
    }
}

/// `hold`, `name` or `whole`, in the folder of `.env`. Says what happens; takes `allow N`, `refuse N`, and the end of its input.
pub fn be(settings: &str, dir: &Path) -> ExitCode {
    if settings == "whole" {
        return be_whole(dir);
    }
    let holds = settings == "hold";
    let on_death = if holds { OnDeath::Refuse } else { OnDeath::Allow };
    let group = group().expect("root may");
    let guardian = Guardian::start(group.as_fd(), &[], Settings { on_death, may_flag: false, user: NOBODY });
    let guardian = Arc::new(guardian.expect("starts"));
    privilege::drop_to(NOBODY, NOBODY).expect("drops");
    privilege::harden().expect("hardens");
    let (say, hear) = channel();
    let door = Door { say: say.clone(), holds };
    let openings = Openings::start(group, Arc::new(door), Arc::new(ByNumber)).expect("starts");
    let told = Arc::clone(&guardian);
    openings.notice(Box::new(move |waits| told.waits(waits)));
    let (lost, relief) = (say.clone(), openings.relief());
    let tell = move |word| match word {
        Word::Ended => drop(lost.send("alone".into())),
        Word::Note(Note::Settled(numbers)) => relief(&numbers),
        Word::Note(Note::TurnedAway(rows)) => {
            let rows = rows.iter().map(|row| format!("away {} {} {}", row.object.ino, row.pid, row.opens));
            rows.for_each(|line| drop(lost.send(line)));
        }
        Word::Note(Note::More(more)) => drop(lost.send(format!("more {more}"))),
    };
    guardian.listen(Box::new(tell)).expect("starts");
    let tree = Dir::open_ambient(dir).expect("opens");
    openings.marker().mark(&tree, b".env").expect("marks");
    say.send(format!("ready {}", guardian.pid())).expect("somebody hears");
    std::thread::spawn(move || {
        for line in hear {
            println!("{line}");
        }
    });
    for line in std::io::stdin().lines() {
        let line = line.expect("reads");
        let (word, number) = line.split_once(' ').expect("two words");
        if word == "chatter" {
            // More than fits, and last that opens wait.
            (0..number.parse::<u32>().expect("a number")).for_each(|_| guardian.waits(false));
            guardian.waits(true);
            say.send("chattered".into()).expect("somebody hears");
            continue;
        }
        if word == "settle" {
            openers::until("it is taken", || guardian.has_heard());
            say.send("settled".into()).expect("somebody hears");
            continue;
        }
        let verdict = if word == "allow" { Verdict::Allow } else { Verdict::Refuse };
        let answered = openings.answer(HeldId(number.parse().expect("a number")), verdict);
        say.send(format!("answered {}", answered == Answered::Done)).expect("somebody hears");
    }
    drop(openings);
    drop(guardian);
    ExitCode::SUCCESS
}

/// Marks the whole file system, as a watch does that holds nothing, until its input ends.
fn be_whole(dir: &Path) -> ExitCode {
    let tree = Dir::open_ambient(dir).expect("opens");
    let wanted = Wanted { events: true, openings: true, processes: false };
    let opened = Privileged::open(&tree, wanted).expect("can be opened").expect("root may");
    let (groups, openings) = (opened.groups.expect("root may"), opened.openings.expect("root may"));
    let settings = Settings { on_death: OnDeath::Allow, may_flag: false, user: NOBODY };
    let guardian = Guardian::start(openings.as_fd(), &groups.all(), settings).expect("starts");
    privilege::drop_to(NOBODY, NOBODY).expect("drops");
    println!("ready {}", guardian.pid());
    let _it_ends = std::io::stdin().lines().count();
    drop((groups, openings));
    drop(guardian);
    ExitCode::SUCCESS
}

/// One that runs.
pub struct Watch {
    pub process: Child,
    pub guardian: u32,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    pub fn start(settings: &str, dir: &Path) -> Self {
        put(&dir.join(".env"), "A=1\n");
        let mut command = Command::new(own_program());
        command.args(["--watch", settings]).arg(dir);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut watch = Self { guardian: 0, input: process.stdin.take(), process, lines };
        watch.guardian = watch.next("ready").parse().expect("a number");
        watch
    }

    /// The rest of the next line, which begins so.
    pub fn next(&mut self, word: &str) -> String {
        let line = self.lines.next().expect("it says something").expect("it is text");
        line.strip_prefix(word).unwrap_or_else(|| panic!("{line}, not {word}")).trim().to_owned()
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("it listens"), "{line}").expect("it reads");
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn kill(&mut self) {
        self.process.kill().expect("kills");
        self.process.wait().expect("ends");
    }

    /// Has it end.
    pub fn let_go(&mut self) {
        drop(self.input.take());
    }

    /// Ends it as its person would.
    pub fn finish(mut self) {
        self.let_go();
        assert!(openers::end(&mut self.process).success());
        openers::until("the guardian ends with the watch", || !platform::process::exists(self.guardian));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // After a test that failed: nothing goes on waiting.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a number");
    kill_process(pid, signal).expect("root may");
}

/// The letter of the process's state.
pub fn state(pid: u32) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Stops it, and waits until it is.
pub fn stop(pid: u32) {
    signal(pid, Signal::STOP);
    openers::until("it stops", || state(pid) == Some('T'));
}
