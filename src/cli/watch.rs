//! `keep watch`: builds the parts, lets them run, prints what came of it.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use platform::backends::{self, Equipment, backends};
use platform::environment::Environment;
use platform::event::{EventSource, Powers, Subscription, WatchSet};
use platform::guardian::Word;
use platform::guardian::note::Note;
use platform::notify::{NOTIFIER, Notifier, find};
use platform::openings::Relief;
use platform::privilege::PrivilegeError;
use platform::signals::Signals;
use platform::terminal::{Terminal, TerminalError, scriptable};
use platform::{Account, Clock, Names, Nobody, Place, Privileged, RelPath, SystemClock, Wanted, Witness, flags};

use crate::baseline::{Baseline, Caps, Index};
use crate::digest::Digest;
use crate::journal::forward::Forwarding;
use crate::journal::{FileJournal, SessionLog, session_id};
use crate::text::json_line;
use crate::watch::approvals::{Approvals, NewFile};
use crate::watch::console::Console;
use crate::watch::expected::Expected;
use crate::watch::guest::{Beside, Guest, GuestBoard, Opening};
use crate::watch::hold::{Answers, Away, Door, Trouble};
use crate::watch::inbox::{Post, inbox};
use crate::watch::machine::{Machine, Settings};
use crate::watch::previous::Previous;
use crate::watch::promises::Promises;
use crate::watch::recovery::{Recovered, accepted, unguarded};
use crate::watch::report::{ReportPath, WatchReport};
use crate::watch::session::{Options, Parts, Session};
use crate::watch::tally::Tally;

use super::args::{BackendChoice, Color, WatchArgs};
use super::begin;
use super::collectors;
use super::exit::{Refusal, RefusalCode, causes};
use super::gate::{Around, Plan};
use super::gate_site::{Site, cannot_start};
use super::ground::Ground;
use super::guarded::{self, Opened};
use super::hold::{Equipped, HoldPlan};
use super::paint::wants_colour;
use super::rules::{Asked, Assembled, assemble, read_rule_file};

mod earlier;
mod limits;

use earlier::{Started, covered, put_right};

/// Runs the command and returns the exit code.
pub fn run(args: &WatchArgs, color: Color, environment: &Environment) -> u8 {
    match watch(args, color, environment) {
        Ok(report) => {
            if args.json {
                super::print_line(&json_line(&report.to_json()));
            }
            report.exit_code
        }
        Err(refusal) => super::refuse(&refusal, args.json),
    }
}

fn watch(args: &WatchArgs, color: Color, environment: &Environment) -> Result<WatchReport, Refusal> {
    let terminal = Terminal::open().map_err(|error| no_terminal(&error))?;
    let (mut ground, Opened { privileged, guardian, trouble }) =
        Ground::find_with(args.path.as_deref(), environment, |dir, user| {
            guarded::open(args, wanted(args), dir, user.unwrap_or(environment.euid))
        })?;
    // Declared before all that uses it: it ends last, and takes off what flags are left.
    ground.guardian = guardian;
    if let Some(trouble) = &trouble
        && (args.hold.is_some() || args.lock)
        && !args.best_effort
    {
        return Err(unavailable(&format!("the guardian did not start: {trouble}")));
    }
    let (post, messages) = inbox();
    let door = Arc::new(Door::new(post.clone()));
    let plan_to_hold = HoldPlan::of(args, &ground)?;
    // The question has its time; beyond that nobody waits, whatever keeps us.
    let longest = Duration::from_secs(u64::from(args.decision_timeout) + 1);
    let longest = plan_to_hold.is_some().then_some(longest);
    let Armed { sources, without, witness, answers, relief } = arm(privileged, &door, longest, &ground);
    hear_guardian(&ground, &post, relief)?;
    // Where nothing is to be held, opens are read for the openers' names alone, to the end.
    let (to_hold, _named) = match plan_to_hold {
        Some(plan) => (Some(plan.with(answers)?), None),
        None => (None, answers.ok()),
    };
    let asked = Asked { lock_deps: args.lock_deps, allow_only: args.allow_only.clone() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let flags = ground.flags();
    may_lock(args, flags.is_some())?;
    let state = ground.state()?;
    let lock = begin::lock(&state, &ground, "keep watch", &*clock)?;
    let candidates = choose(sources, args.backend)?;
    let gate_args = args.gate();
    let plan = match &gate_args {
        Some(args) => {
            let site = Site::at(ground.without_repository())?;
            Some(Plan::make("keep watch --gate", args, site, &*clock, environment)?)
        }
        None => None,
    };

    let couriers = Arc::new(collectors::start(&args.log, &ground, &state, environment)?);

    let session = session_id(clock.wall(), platform::process::own_pid());
    let opened = FileJournal::open(state.dir(), ground.owner, &session).map_err(|error| begin::bad_journal(&error))?;
    let replayed = opened.replayed;
    let mut journal = Forwarding::new(opened.journal, collectors::about(&ground), Arc::clone(&couriers));
    let objects = begin::objects(&state)?;
    let quarantine = begin::quarantine(&state)?;
    quarantine.tidy().map_err(|error| begin::bad_store(&causes(&error)))?;
    let log = SessionLog::create(state.dir(), &session).map_err(|error| begin::bad_store(&causes(&error)))?;
    // What the tree says of rules and hooks may have been changed while nobody watched: it counts once it is put back.
    let interrupted = match &replayed.sealed_session {
        Some(last) if !replayed.ended_properly => {
            let stores = (&objects, &quarantine);
            Some(put_right(&mut ground, last, &replayed, &mut journal, stores, candidates[0].name(), &*clock)?)
        }
        _ => None,
    };
    let read = read_rule_file(&ground).and_then(|file| Ok((assemble(&ground, file.as_deref(), &asked)?, file)));
    let (Assembled { rules, roots, frozen, scope, contest_limit, warnings }, rule_file) = read.inspect_err(|_| {
        if let Some(line) = interrupted.as_ref().and_then(|done| begin::recovery_line(&done.0, "keep watch")) {
            super::say(&line);
        }
    })?;
    let session_log = ReportPath::new(state.path().join(log.name()).as_os_str().as_bytes().to_vec());

    let _signals = start_signals(&post)?;
    let approvals = Approvals::default();
    let gate = match plan {
        Some(plan) => Some(prepare(plan, &post, &approvals, &clock, environment)?),
        None => None,
    };
    let raw = terminal.raw().map_err(|error| no_terminal(&error))?;
    let colour = wants_colour(color, environment, true);
    start_input(&terminal, &post)?;
    let mut console = Console::new(terminal, raw, colour, Arc::clone(&clock));
    if gate.is_some() {
        console.share();
    }
    let started = Started {
        asked: &asked,
        args,
        roots: &roots,
        rule_file: rule_file.as_deref(),
        backend: candidates[0].name(),
        objects: &objects,
        clock: &*clock,
        contest_limit,
    };
    let written = started.write_first(&mut journal);
    if let Err(refusal) = written {
        console.finish();
        return Err(refusal);
    }
    let (rows, lines) = accepted(&roots, &replayed, &objects);
    let did_something = interrupted.is_some();
    let (mut recovered, expected, previous) = match interrupted {
        Some((recovered, earlier)) => {
            let expected = Expected::after(
                &recovered,
                (earlier.rules, &earlier.roots),
                rows,
                unguarded(&roots, &replayed),
                &roots,
            );
            (recovered, expected, Previous::default())
        }
        None => {
            let previous = Previous {
                snapshots: rows.into_iter().map(|(place, row)| (place, row.snapshot)).collect(),
                unguarded: unguarded(&roots, &replayed),
                covered: covered(&ground, &replayed, &objects, (&asked, rule_file.as_deref())),
            };
            let left = begin::unlock(flags.as_deref(), &roots, &replayed.flagged, &mut journal, &*clock)
                .inspect_err(|_| console.finish())?;
            (Recovered { lines, left, ..Recovered::default() }, Expected::default(), previous)
        }
    };
    recovered.lines.extend(recovered.left.lines("keep watch"));
    let unguarded = trouble
        .map(|trouble| format!("keep watch: warning: opens are not read, as no guardian could be started: {trouble}"));
    let unlocked = args.lock && flags.is_none();
    let unlocked = unlocked.then(|| format!("keep watch: warning: nothing is locked: {}", flags::HINDRANCE));
    let recovery = begin::recovery_line(&recovered, "keep watch");
    let typed_into = typed_into(environment);
    let first = without.iter().chain(&unguarded).chain(&unlocked).chain(&warnings).chain(&recovered.lines);
    first.chain(&recovery).chain(&typed_into).for_each(|line| console.line(line));

    let known: Vec<Place> = previous.snapshots.keys().cloned().collect();
    let rules = Arc::new(rules);
    let index = Index::default();
    let (hold, promises) = match to_hold {
        Some(ready) => {
            let promises = ready.promises.clone();
            let hold = ready.start(&door, &index, &roots, &rules, &post).inspect_err(|_| console.finish())?;
            (hold, promises)
        }
        None => (None, Promises::default()),
    };
    for line in &promises.missing {
        console.line(&format!("keep watch: warning: {line}"));
    }
    let set = WatchSet {
        roots: roots.all().to_vec(),
        interest: Arc::clone(&rules) as Arc<dyn platform::Interest>,
        known,
        interval: Duration::from_millis(u64::from(args.watch_interval_ms)),
    };
    let (backend_name, powers, subscription) = match start_first(candidates, &set, &post) {
        Ok(Running { name, powers, subscription, warnings }) => {
            warnings.iter().for_each(|line| console.line(line));
            (name, powers, subscription)
        }
        Err(refusal) => {
            console.finish();
            return Err(refusal);
        }
    };
    let start_polling = {
        Box::new(move || {
            let poll = backends().into_iter().find(|backend| backend.name() == "poll")?;
            poll.start(set.clone(), sink(&post)).ok()
        })
    };
    let options = Options {
        session,
        backend: backend_name,
        powers,
        decision_timeout: Duration::from_secs(u64::from(args.decision_timeout)),
        contest_limit,
        interval: Duration::from_millis(u64::from(args.watch_interval_ms)),
        max_file_bytes: args.max_file_bytes,
        new_file: NewFile { mode: 0o666 & !environment.umask, uid: ground.owner },
        rule_file: rule_file.as_deref().map(Digest::of),
        frozen,
        scope,
        best_effort: args.best_effort,
        session_log,
        limits: limits::of_watch(backend_name, powers.names_the_writer, &promises)
            .into_iter()
            .chain(limits::of_lock(args, flags.is_some(), &recovered.left.still))
            .collect(),
        promises,
    };
    let machine = Machine::new(Settings { decision_timeout: options.decision_timeout, contest_limit });
    let account: Arc<dyn Account> = match witness {
        Some(witness) => witness,
        None => Arc::new(Nobody),
    };
    let caps = Caps { file_bytes: args.max_file_bytes, ..Caps::default() };
    let tally = Tally::new(did_something.then_some(recovered.recovery));
    let parts = Parts {
        roots,
        rules,
        objects,
        quarantine,
        journal: Box::new(journal),
        log,
        couriers,
        console,
        notifier: notifier(args, environment, &ground),
        clock,
        messages,
        backend: subscription,
        account,
        lock,
        start_polling,
        gate,
        approvals,
        hold,
        flags: flags.filter(|_| args.lock),
        left_locked: recovered.left.objects,
        others: ground.others(),
    };
    if let Some(guardian) = &ground.guardian {
        // What is left by then of an earlier watch stays as it is; that was said.
        guardian.begin().map_err(|error| unavailable(&causes(&error)))?;
    }
    let baseline = if parts.hold.is_some() { Baseline::indexed(caps, index) } else { Baseline::new(caps) };
    Session::new(parts, options, machine, baseline, expected, previous, tally).run()
}

/// A warning, if this terminal is one that programs can type into.
fn typed_into(environment: &Environment) -> Option<String> {
    let name = scriptable(&|name| environment.text(name))?;
    Some(format!(
        "keep watch: warning: this terminal can be typed into by a program ({name}); run the watch where the agent's tools cannot reach"
    ))
}

/// Puts the gate of this terminal together; it serves once the watch does.
fn prepare(
    plan: Plan<'_>,
    post: &Post,
    approvals: &Approvals,
    clock: &Arc<dyn Clock>,
    environment: &Environment,
) -> Result<Opening, Refusal> {
    let (to_gate, messages) = channel();
    let beside = Beside { approvals: approvals.clone(), post: post.clone(), clock: Arc::clone(clock) };
    let around = Around {
        board: Box::new(GuestBoard::new(post.clone())),
        watch: Some(Box::new(beside)),
        clock: Arc::clone(clock),
        messages,
        to_core: to_gate.clone(),
    };
    let ready = plan.start("watch", around, environment)?;
    let post = post.clone();
    Ok(Box::new(move || {
        let (gate, doors) = ready.open()?;
        Guest::start(gate, to_gate, doors, post)
            .map_err(|error| cannot_start(&format!("cannot start a thread: {error}")))
    }))
}

/// What privilege is good for with this backend.
fn wanted(args: &WatchArgs) -> Wanted {
    match args.backend {
        BackendChoice::Auto | BackendChoice::Fanotify => Wanted::ALL,
        BackendChoice::Inotify | BackendChoice::Fsevents | BackendChoice::Poll => Wanted::default(),
    }
}

/// Has it said what the guardian did in our place, and if it ends before we do.
fn hear_guardian(ground: &Ground, post: &Post, relief: Option<Relief>) -> Result<(), Refusal> {
    let Some(guardian) = &ground.guardian else { return Ok(()) };
    let post = post.clone();
    let hear = Box::new(move |word| match word {
        Word::Ended => post.held_trouble(Trouble::Alone),
        Word::Note(Note::Settled(numbers)) => {
            if let Some(relief) = &relief {
                relief(&numbers);
            }
        }
        Word::Note(Note::Relieved(rows)) => post.answered_meanwhile(Away { rows, ..Away::default() }),
        Word::Note(Note::More { refused, let_through }) => {
            post.answered_meanwhile(Away { rows: Vec::new(), refused, let_through });
        }
    });
    guardian.listen(hear).map_err(|error| unavailable(&causes(&error)))
}

/// What privilege gave, put to use.
struct Armed {
    /// The backends of this system.
    sources: Vec<Box<dyn EventSource>>,
    /// A line, if there was privilege and it was of no use.
    without: Option<String>,
    /// Who tells processes, if anybody can.
    witness: Option<Arc<Witness>>,
    /// Where answers to held opens go, or why none can be held.
    answers: Result<Box<dyn Answers>, String>,
    /// Who takes the numbers of what the guardian answered.
    relief: Option<Relief>,
}

/// Puts to use what privilege gave; opens are held for `to_hold` at most, if they are.
fn arm(
    opened: Result<Option<Privileged>, PrivilegeError>,
    door: &Arc<Door>,
    to_hold: Option<Duration>,
    ground: &Ground,
) -> Armed {
    let (opened, without) = match opened {
        Ok(opened) => (opened, None),
        Err(error) => (None, Some(format!("keep watch: warning: {}; going on as without privilege", causes(&error)))),
    };
    let Some(Privileged { groups: Some(groups), openings, connector }) = opened else {
        let answers = Err("that takes root, or CAP_SYS_ADMIN on the program, and the fanotify backend".to_owned());
        return Armed { sources: backends(), without, witness: None, answers, relief: None };
    };
    let witness = Witness::new(connector);
    let top = ground.tree.open_dir(&RelPath::root()).ok();
    let guardian = ground.guardian.clone();
    let Equipped { answers, marker, relief } =
        Equipped::start(openings, top.as_ref().zip(to_hold), door, &witness, guardian);
    let names = Some(Arc::clone(&witness) as Arc<dyn Names>);
    let sources = backends::with_privilege(Equipment { groups, marker, names });
    Armed { sources, without, witness: Some(witness), answers, relief }
}

/// The strongest backend that works here, and after it those that would take its place; only the one named, if one is.
/// Whether these work is found out if they have to.
fn choose(sources: Vec<Box<dyn EventSource>>, choice: BackendChoice) -> Result<Vec<Box<dyn EventSource>>, Refusal> {
    let mut reasons = Vec::new();
    let mut sources = sources.into_iter().filter(|backend| choice.name().is_none_or(|name| name == backend.name()));
    while let Some(backend) = sources.next() {
        match backend.probe() {
            Ok(()) => return Ok(std::iter::once(backend).chain(sources).collect()),
            Err(error) => reasons.push(causes(&error)),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("{} is not a backend of this system", choice.name().unwrap_or("auto")));
    }
    Err(unavailable(&reasons.join("; ")))
}

/// A running backend.
struct Running {
    name: &'static str,
    powers: Powers,
    subscription: Box<dyn Subscription>,
    /// A line for each stronger one that did not start.
    warnings: Vec<String>,
}

/// Starts the first that can cover this very tree: a backend may work here and not on the tree's file system.
fn start_first(candidates: Vec<Box<dyn EventSource>>, set: &WatchSet, post: &Post) -> Result<Running, Refusal> {
    let mut reasons = Vec::new();
    for backend in candidates {
        let powers = backend.powers(set);
        match backend.start(set.clone(), sink(post)) {
            Ok(subscription) => {
                let warnings = reasons.iter().map(|reason| format!("keep watch: warning: {reason}")).collect();
                return Ok(Running { name: backend.name(), powers, subscription, warnings });
            }
            Err(error) => reasons.push(causes(&error)),
        }
    }
    Err(unavailable(&reasons.join("; ")))
}

fn start_signals(post: &Post) -> Result<Signals, Refusal> {
    let post = post.clone();
    Signals::start(Box::new(move |signal| {
        // Nobody listens any more once the watch has ended.
        post.signal(signal);
    }))
    .map_err(|error| {
        Refusal::new(RefusalCode::NoTty, causes(&error), "too many threads or open files may be the reason")
    })
}

fn start_input(terminal: &Terminal, post: &Post) -> Result<(), Refusal> {
    let post = post.clone();
    terminal
        .spawn_input(Box::new(move |event| {
            post.input(event);
        }))
        .map_err(|error| no_terminal(&error))
}

fn sink(post: &Post) -> platform::event::Sink {
    let post = post.clone();
    Box::new(move |hint| post.hint(hint))
}

fn notifier(args: &WatchArgs, environment: &Environment, ground: &Ground) -> Option<Notifier> {
    if args.no_notify || !NOTIFIER.has_desktop(&|name| environment.is_set(name)) {
        return None;
    }
    let search = environment.bytes("PATH")?;
    // A program of the repository's must not be run in the notifier's name.
    let program = find(NOTIFIER, search, &[ground.tree.path().to_path_buf()])?;
    Notifier::start(Some((NOTIFIER, program))).ok()
}

/// Refuses `--lock` where nothing can be locked, unless that may be.
fn may_lock(args: &WatchArgs, may_lock: bool) -> Result<(), Refusal> {
    if !args.lock || may_lock || args.best_effort {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalCode::BackendUnavailable,
        format!("--lock: {}", flags::HINDRANCE),
        "start it with privilege (sudo keep watch --lock), or go on without the lock by --best-effort",
    ))
}

fn no_terminal(error: &TerminalError) -> Refusal {
    Refusal::new(
        RefusalCode::NoTty,
        format!("{}; only a terminal can answer questions", causes(error)),
        "start keep watch in a terminal window of its own, without redirecting its input",
    )
}

fn unavailable(reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::BackendUnavailable,
        reason,
        "leave --backend out to take the strongest that works here; keep doctor says what would raise it",
    )
}
