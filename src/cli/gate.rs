//! `keep gate`: puts the gate together, lets it run in this terminal, and says how it ended.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use platform::ambient::{self, Content};
use platform::environment::Environment;
use platform::holder::{Holder, Known};
use platform::lock::{Lock, LockError};
use platform::signals::Signals;
use platform::terminal::{Terminal, TerminalError, scriptable};
use platform::{Clock, Listening, LocalListener, SystemClock};

use crate::gate::cage::Cage;
use crate::gate::screen::Screen;
use crate::gate::serve::parts::OnWake;
use crate::gate::serve::{Board, Doors, End, Gate, Message, Surroundings, Watch};
use crate::gate::tools::info::served;
use crate::journal::rfc3339;
use crate::text::escaped;

use super::args::{Color, GateArgs};
use super::exit::{Exit, Refusal, RefusalCode, causes};
use super::gate_site::{Manner, SOCKET, Site, cannot_start, herald, on_wake, zone};
use super::paint::wants_colour;

/// A manifest is a list of names.
const MAX_MANIFEST: u64 = 256 << 10;

/// Runs the command and returns the exit code.
pub fn run(args: &GateArgs, color: Color, environment: &Environment) -> u8 {
    match gate(args, color, environment) {
        Ok(End::Signal(_) | End::Left) => Exit::Clean.code(),
        Ok(End::Broke(why)) => {
            super::say(&format!("keep gate: it cannot go on: {}", escaped(why.as_bytes())));
            Exit::Broke.code()
        }
        Err(refusal) => super::refuse(&refusal, false),
    }
}

fn gate(args: &GateArgs, color: Color, environment: &Environment) -> Result<End, Refusal> {
    let terminal = Terminal::open().map_err(|error| no_terminal(&error))?;
    let site = Site::find(args.root.as_deref(), environment)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let plan = Plan::make("keep gate", args, site, &*clock, environment)?;
    let colour = wants_colour(color, environment, true);
    let (to_core, messages) = channel();
    let _signals = start_signals(&to_core)?;
    let raw = terminal.raw().map_err(|error| no_terminal(&error))?;
    start_input(&terminal, &to_core)?;
    let board = Box::new(Screen::new(terminal, raw, colour, Arc::clone(&clock)));
    let mut ready = plan.start("gate", Around { board, watch: None, clock, messages, to_core }, environment)?;
    if let Some(name) = scriptable(&|name| environment.text(name)) {
        ready.lines.push(format!(
            "warning: this terminal can be typed into by a program ({name}); hold the gate where the agent's tools cannot reach"
        ));
    }
    // Held to the end: whoever has the lock may replace the socket.
    let (gate, _doors) = ready.open()?;
    Ok(gate.run())
}

/// A gate that was asked for, and nothing of it started.
pub(super) struct Plan<'a> {
    args: &'a GateArgs,
    site: Site,
    lock: Lock,
    cage: Cage,
    /// What is to be said of the cage.
    notes: Vec<String>,
    on_wake: Option<OnWake>,
}

/// What a gate talks to.
pub(super) struct Around {
    pub board: Box<dyn Board + Send>,
    pub watch: Option<Box<dyn Watch>>,
    pub clock: Arc<dyn Clock>,
    pub messages: Receiver<Message>,
    pub to_core: Sender<Message>,
}

impl<'a> Plan<'a> {
    /// Takes the lock of the site in the name of `command` and reads what there is to read.
    pub fn make(
        command: &str,
        args: &'a GateArgs,
        site: Site,
        clock: &dyn Clock,
        environment: &Environment,
    ) -> Result<Self, Refusal> {
        let holder = Holder::this_process(command, &rfc3339(clock.wall()))
            .map_err(|error| cannot_start(&format!("this process cannot be told: {error}")))?;
        let lock = site.control.lock(&holder).map_err(|error| locked(&site, error))?;
        let (cage, notes) = cage(args.manifest.as_deref(), environment)?;
        let on_wake = args.on_wake.as_deref().map(|program| on_wake(program, environment, &site)).transpose()?;
        Ok(Self { args, site, lock, cage, notes, on_wake })
    }

    /// Starts its threads and processes; `command` is for the audit.
    pub fn start(self, command: &str, around: Around, environment: &Environment) -> Result<Ready, Refusal> {
        let Self { args, site, lock, cage, notes, on_wake } = self;
        let Around { board, watch, clock, messages, to_core } = around;
        let manner = Manner {
            ask_timeout: Duration::from_secs(u64::from(args.ask_timeout)),
            has_terminal: true,
            best_effort: args.best_effort,
            fires: true,
            zone: zone(environment),
        };
        let herald = herald(args.no_notify, environment, &site.ground.tree);
        let surroundings = Surroundings { board, herald, on_wake, watch, clock, messages, to_core: to_core.clone() };
        let parts = site.parts(&cage, &manner, surroundings)?;
        let count = parts.tools.len();
        let gate = Gate::start(parts, command).map_err(|why| cannot_start(&why))?;
        let listeners = listen(&site, args.listen.as_deref(), environment)?;
        let start_line = start_line(count, &site.ground.shown(), gate.confinement());
        let mut lines = site.policy.lines.clone();
        lines.extend(notes);
        lines.extend(gate.missing().iter().map(|missing| format!("warning: {missing}")));
        Ok(Ready { gate, lock, listeners, lines, start_line, to_core })
    }
}

/// A gate that serves nobody yet.
pub(super) struct Ready {
    gate: Gate,
    lock: Lock,
    listeners: Vec<LocalListener>,
    /// What the person should know before the first question.
    lines: Vec<String>,
    start_line: String,
    to_core: Sender<Message>,
}

impl Ready {
    /// Says what there is to say, and lets clients in.
    pub fn open(self) -> Result<(Gate, (Vec<Listening>, Lock)), Refusal> {
        let Self { mut gate, lock, listeners, lines, start_line, to_core } = self;
        for line in lines {
            gate.say(&format!("keep gate: {line}"));
        }
        gate.say(&start_line);
        // Only now: nothing is served before the line that says so.
        let doors = Doors::new(to_core);
        let listening = listeners.into_iter().map(|listener| open(listener, &doors)).collect::<Result<Vec<_>, _>>()?;
        Ok((gate, (listening, lock)))
    }
}

fn start_line(count: usize, root: &str, confinement: &[String]) -> String {
    let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    let mut line = format!("keep gate: {tools} below {root}; agents reach them through keep mcp");
    for part in confinement {
        line.push_str("; ");
        line.push_str(part);
    }
    line
}

/// The tools there are, and what is to be said of them.
fn cage(manifest: Option<&Path>, environment: &Environment) -> Result<(Cage, Vec<String>), Refusal> {
    let Some(manifest) = manifest else { return Ok((Cage::all(), Vec::new())) };
    let path = environment.directory.join(manifest);
    let shown = escaped(manifest.as_os_str().as_bytes());
    let refuse = |why: &str| {
        let hint = "a manifest is {\"name\": \"...\", \"uses\": [\"file_read\", ...]}, with exact names or \"*\"";
        Refusal::new(RefusalCode::ConfigInvalid, why, hint)
    };
    match ambient::read(&path, MAX_MANIFEST).map_err(|error| refuse(&causes(&error)))? {
        Content::Bytes(bytes) => {
            let cage = Cage::parse(&bytes, &shown).map_err(|error| refuse(&causes(&error)))?;
            let notes = cage.absent(served);
            Ok((cage, notes))
        }
        Content::Absent => Err(refuse(&format!("{shown} is no file"))),
        Content::TooLarge => Err(refuse(&format!("{shown} is too large to be a manifest"))),
    }
}

fn listen(site: &Site, also: Option<&Path>, environment: &Environment) -> Result<Vec<LocalListener>, Refusal> {
    let refuse = |error: platform::SocketError| {
        Refusal::new(RefusalCode::Socket, causes(&error), "end whoever listens there, or move away what has the name")
    };
    let mut listeners = vec![LocalListener::replace(site.control.dir(), site.control.path(), SOCKET).map_err(refuse)?];
    if let Some(path) = also {
        listeners.push(LocalListener::at(&environment.directory.join(path)).map_err(refuse)?);
    }
    Ok(listeners)
}

fn open(listener: LocalListener, doors: &Doors) -> Result<Listening, Refusal> {
    let doors = doors.clone();
    listener.start(Box::new(move |stream| doors.enter(stream))).map_err(|error| cannot_start(&causes(&error)))
}

fn start_signals(to_core: &Sender<Message>) -> Result<Signals, Refusal> {
    let to_core = to_core.clone();
    Signals::start(Box::new(move |signal| {
        // Nobody listens any more once the gate has ended.
        let _ = to_core.send(Message::Signal(signal));
    }))
    .map_err(|error| cannot_start(&causes(&error)))
}

fn start_input(terminal: &Terminal, to_core: &Sender<Message>) -> Result<(), Refusal> {
    let to_core = to_core.clone();
    terminal
        .spawn_input(Box::new(move |event| {
            let _ = to_core.send(Message::Input(event));
        }))
        .map_err(|error| no_terminal(&error))
}

fn locked(site: &Site, error: LockError) -> Refusal {
    match error {
        LockError::Held { holder } => active(&site.ground.shown(), &holder),
        error => Refusal::new(RefusalCode::Journal, causes(&error), "look at the lock file in the control folder"),
    }
}

fn active(root: &str, holder: &Known) -> Refusal {
    let command = holder.command.as_deref().map_or_else(|| "another keep".to_owned(), |text| escaped(text.as_bytes()));
    let pid = holder.pid.map_or_else(|| "unknown pid".to_owned(), |pid| format!("pid {pid}"));
    let since =
        holder.since.as_deref().map_or_else(String::new, |since| format!(", since {}", escaped(since.as_bytes())));
    Refusal::new(
        RefusalCode::Active,
        format!("{command} holds the gate of {root} already ({pid}{since})"),
        "use its terminal, or end it first (Ctrl-C there)",
    )
}

fn no_terminal(error: &TerminalError) -> Refusal {
    Refusal::new(
        RefusalCode::NoTty,
        format!("{}; only a terminal can answer questions", causes(error)),
        "start keep gate in a terminal window of its own, without redirecting its input",
    )
}
