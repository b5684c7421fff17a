//! What a gate is put together from, for `keep gate` and for `keep mcp` without one.
//!
//! Promise: a policy that cannot be read is a refusal, never a missing one; the processes that touch files are told what
//! they have to fail to read, which is the control folder.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use platform::environment::Environment;
use platform::hook::{self, Hook};
use platform::notify::{NOTIFIER, Notifier, find};
use platform::{LocalStream, Moment, Root, SystemClock, Zone, random};
use serde_json::{Map, Value};

use crate::gate::audit::{Audit, AuditEvent};
use crate::gate::cage::Cage;
use crate::gate::control::{Control, ControlError};
use crate::gate::files::{Answer, Job};
use crate::gate::grants::GrantFile;
use crate::gate::machine::{Machine, Settings};
use crate::gate::pattern::Grant;
use crate::gate::policy_file::{self, Autonomy, PolicyFile};
use crate::gate::serve::parts::{Due, MakeChores, MakeHands, OnWake};
use crate::gate::serve::{Books, Chores, End, Gate, Hands, Herald, Parts, Reading, Silent, Surroundings};
use crate::gate::services::{self, Services};
use crate::gate::tools::info::{info, served};
use crate::gate::tools::{Request, Tool};
use crate::gate::worker::{self, FilesWorker};
use crate::text::escaped;

use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;

pub use crate::gate::control::SOCKET;

/// The name of the policy in the control folder.
const POLICY: &str = "policy.toml";
/// A policy is a few lines.
const MAX_POLICY: u64 = 256 << 10;

/// The root, its control folder, and the policy in it.
pub struct Site {
    /// The directory the file tools work in, and who we are there.
    pub ground: Ground,
    /// Its control folder.
    pub control: Control,
    /// What `policy.toml` says.
    pub policy: PolicyFile,
}

/// How a gate asks, and what it may go without.
pub struct Manner {
    /// How long a question waits.
    pub ask_timeout: Duration,
    /// Whether there is a terminal to ask at.
    pub has_terminal: bool,
    /// Whether the processes that touch files may be confined less than they should.
    pub best_effort: bool,
    /// Whether reminders are fired.
    pub fires: bool,
    /// The person's time zone.
    pub zone: Zone,
}

impl Site {
    /// Finds the directory `root`, or takes the current one, and opens its control folder.
    pub fn find(root: Option<&Path>, environment: &Environment) -> Result<Self, Refusal> {
        Self::at(Ground::plain(root, environment)?)
    }

    /// Opens the control folder of a directory.
    pub fn at(ground: Ground) -> Result<Self, Refusal> {
        let control = Control::open(&ground.state_top, &ground.tree, ground.owner).map_err(|error| {
            let code = match error {
                ControlError::Around { .. } | ControlError::Within { .. } => RefusalCode::Root,
                _ => RefusalCode::Journal,
            };
            let hint = "name a directory apart from the state folder; KEEP_STATE_DIR chooses another place for that";
            Refusal::new(code, causes(&error), hint)
        })?;
        let policy = read_policy(&control, ground.owner)?;
        Ok(Self { ground, control, policy })
    }

    /// The tools of a cage, as far as this version serves them.
    pub fn tools(cage: &Cage) -> Vec<(Tool, crate::gate::wire::ToolInfo)> {
        cage.tools().into_iter().filter(|tool| served(*tool)).map(|tool| (tool, info(tool))).collect()
    }

    /// Puts the parts of a gate together.
    pub fn parts(&self, cage: &Cage, manner: &Manner, around: Surroundings) -> Result<Parts, Refusal> {
        // Asked once now, so that later a missing answer is none of the system's, but a fault of ours.
        random::bytes::<16>().map_err(|error| cannot_start(&format!("the system gives no random bytes: {error}")))?;
        let ids = || random::bytes().expect("the kernel's generator worked at the start, and never stops");
        let settings = Settings {
            ask_timeout: manner.ask_timeout,
            guarded: self.policy.autonomy == Autonomy::Guarded,
            has_terminal: manner.has_terminal,
        };
        let grants = GrantFile::open(&self.control).map_err(|error| cannot_start(&causes(&error)))?;
        let audit = Audit::open(&self.control).map_err(|error| cannot_start(&causes(&error)))?;
        Ok(Parts {
            tools: Self::tools(cage),
            machine: Machine::new(self.policy.policy.clone(), settings, Box::new(ids)),
            books: Box::new(ControlBooks { grants, audit }),
            hands: self.hands(manner),
            searcher: self.hands(manner),
            chores: self.chores(manner, around.on_wake.is_some())?,
            around,
        })
    }

    fn chores(&self, manner: &Manner, keeps_wakes: bool) -> Result<MakeChores, Refusal> {
        let dir = self.control.dir().try_clone().map_err(|error| cannot_start(&causes(&error)))?;
        let settings = services::Settings { fires: manner.fires, keeps_wakes, zone: manner.zone.clone() };
        Ok(Box::new(move || match Services::open(&dir, settings) {
            Ok(services) => Ok(Box::new(services) as Box<dyn Chores>),
            Err(error) => Err(causes(&error)),
        }))
    }

    fn hands(&self, manner: &Manner) -> MakeHands {
        let (root, control) = (Arc::clone(&self.ground.tree), self.control.path().to_path_buf());
        let best_effort = manner.best_effort;
        Box::new(move || {
            let settings = worker::Settings { best_effort, outside: vec![control], ..worker::Settings::default() };
            match FilesWorker::start_with(&root, settings) {
                Ok(worker) => Ok(Box::new(Worker(worker)) as Box<dyn Hands>),
                Err(error) => Err(causes(&error)),
            }
        })
    }
}

/// A files worker as hands.
struct Worker(FilesWorker);

impl Hands for Worker {
    fn run(&mut self, job: &Job) -> Result<Answer, String> {
        self.0.run(job).map_err(|error| causes(&error))
    }
    fn confinement(&self) -> Vec<String> {
        self.0.confinement()
    }
    fn missing(&self) -> Vec<String> {
        self.0.missing()
    }
}

impl Chores for Services {
    fn run(
        &mut self,
        request: &Request,
        connection: u64,
        wall: SystemTime,
        now: Moment,
    ) -> Result<Map<String, Value>, String> {
        Services::run(self, request, connection, wall, now)
    }
    fn wake_at(&self, wall: SystemTime, now: Moment) -> Option<SystemTime> {
        Services::wake_at(self, wall, now)
    }
    fn due(&mut self, wall: SystemTime, now: Moment) -> Vec<Due> {
        Services::due(self, wall, now)
    }
    fn gone(&mut self, connection: u64) {
        Services::gone(self, connection);
    }
}

/// The two files of the control folder that tell what was answered.
struct ControlBooks {
    grants: GrantFile,
    audit: Audit,
}

impl Books for ControlBooks {
    fn grants(&mut self) -> Option<Reading> {
        let reading = self.grants.read_if_changed()?;
        Some(Reading { grants: reading.grants, fault: reading.fault })
    }
    fn remember(&mut self, grants: &[Grant]) -> Result<(), String> {
        self.grants.remember(grants).map_err(|error| causes(&error))
    }
    fn write(&mut self, event: &AuditEvent, at: SystemTime) -> Result<(), String> {
        self.audit.append(event, at).map_err(|error| causes(&error))
    }
}

/// The policy of a control folder; that of an empty file if there is none.
fn read_policy(control: &Control, owner: u32) -> Result<PolicyFile, Refusal> {
    let shown = escaped(std::os::unix::ffi::OsStrExt::as_bytes(control.path().join(POLICY).as_os_str()));
    let refuse = |why: &str| {
        Refusal::new(
            RefusalCode::ConfigInvalid,
            format!("{shown}: {why}"),
            "mend it, or remove it to have the table of the documentation",
        )
    };
    let bytes = match control.dir().open_read(POLICY.as_bytes()) {
        Ok(file) => {
            let stat = platform::dir::stat_of(file.as_fd()).map_err(|error| refuse(&causes(&error)))?;
            if stat.uid != owner || stat.mode & 0o022 != 0 {
                return Err(refuse("others can write it, or it is another user's"));
            }
            let mut bytes = Vec::new();
            let read = file.take(MAX_POLICY + 1).read_to_end(&mut bytes);
            read.map_err(|error| refuse(&error.to_string()))?;
            if bytes.len() as u64 > MAX_POLICY {
                return Err(refuse("it is too large to be a policy"));
            }
            bytes
        }
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(refuse(&causes(&error))),
    };
    policy_file::parse(&bytes, &shown).map_err(|error| {
        let hint = "a policy can make a kind stricter and never looser; the documentation has the table";
        Refusal::new(RefusalCode::ConfigInvalid, causes(&error), hint)
    })
}

/// Shows desktop notifications, unless switched off or there is nothing to show them with.
pub fn herald(is_off: bool, environment: &Environment, root: &Root) -> Herald {
    let notifier = || {
        let search = environment.bytes("PATH")?;
        // A program that an agent may have written must not be run in the notifier's name.
        let program = find(NOTIFIER, search, &[root.path().to_path_buf()])?;
        Notifier::start(Some((NOTIFIER, program))).ok()
    };
    Herald::new(if is_off { None } else { notifier() })
}

/// Starts the person's program with a wake's note on its standard input.
pub fn on_wake(program: &Path, environment: &Environment, site: &Site) -> Result<OnWake, Refusal> {
    let path = environment.directory.join(program);
    // What lies below the root may be an agent's.
    let found = hook::find(&path, &[site.ground.tree.path().to_path_buf()]);
    let started = found.and_then(|path| Hook::start(path, environment.directory.clone()));
    let hook = started.map_err(|error| {
        Refusal::new(RefusalCode::Gate, causes(&error), "--on-wake takes a program outside the root")
    })?;
    // Too many at a time are dropped: the client is told all the same.
    Ok(Box::new(move |note| {
        let _is_started = hook.run(note.as_bytes());
    }))
}

/// The time zone of the person's account.
pub fn zone(environment: &Environment) -> Zone {
    Zone::local(environment.bytes("TZ"))
}

/// A part of the gate could not be started.
pub fn cannot_start(why: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Gate,
        why,
        "keep doctor says what this system offers; --best-effort goes on with what there is",
    )
}

/// Serves one client in a thread of this process, without anybody to ask: what `keep mcp` does without a gate. The other
/// end of its connection is returned.
pub fn strict(site: &mut Site, environment: &Environment) -> Result<LocalStream, Refusal> {
    // It may have been changed since the last one.
    site.policy = read_policy(&site.control, site.ground.owner)?;
    let manner = Manner {
        ask_timeout: Duration::ZERO,
        has_terminal: false,
        best_effort: false,
        fires: false,
        zone: zone(environment),
    };
    let herald = herald(false, environment, &site.ground.tree);
    let (to_core, messages) = channel();
    let clock = Arc::new(SystemClock);
    let surroundings =
        Surroundings { board: Box::new(Silent), herald, on_wake: None, watch: None, clock, messages, to_core };
    let parts = site.parts(&Cage::all(), &manner, surroundings)?;
    let mut gate = Gate::start(parts, "mcp").map_err(|why| cannot_start(&why))?;
    let (ours, theirs) = LocalStream::pair().map_err(|error| cannot_start(&error.to_string()))?;
    gate.serve_only(ours).map_err(|why| cannot_start(&why))?;
    let run = move || -> End { gate.run() };
    std::thread::Builder::new()
        .name("gate".to_owned())
        .spawn(run)
        .map_err(|error| cannot_start(&format!("cannot start a thread: {error}")))?;
    Ok(theirs)
}
