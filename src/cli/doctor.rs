//! `keep doctor`: measures what this machine offers, and says it.
//!
//! Promise: each yes was tried now, as the user a watch would run as, or, of what needs privilege, with that which doctor
//! itself was started with and then gave up; scratch files are gone afterwards. In a repository they lie in its git directory,
//! where no rule covers them.
//! Limit: another user, another tree or the next minute may have it otherwise.

use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use platform::backends::backends;
use platform::environment::Environment;
use platform::notify::{NOTIFIER, find};
use platform::powers::Powers;
use platform::terminal::scriptable;
use platform::{Dir, FsError, RelPath, confine, machine, openings, trial};

use crate::text::{escaped, json_line};
use crate::trust::{self, Fit, Trusted};
use crate::watch::report::ReportPath;

use super::args::{Color, DoctorArgs};
use super::diagnosis::{self, Measured};
use super::exit::{Exit, Refusal, causes};
use super::ground::Ground;
use super::paint::{Paint, wants_colour};
use super::{guarded, hold};
use crate::gate::worker::FilesWorker;

/// Runs the command and returns the exit code.
pub fn run(args: &DoctorArgs, color: Color, environment: &Environment) -> u8 {
    let open = |dir: &Dir, user: Option<u32>| Opened {
        // Before any thread runs, or it cannot be made.
        guardian: guarded::try_it(user.unwrap_or(environment.euid)),
        powers: Powers::open(dir),
        opens: openings::group(),
    };
    let (ground, opened) = match Ground::find_with(args.path.as_deref(), environment, open) {
        Ok(found) => found,
        Err(refusal) => return super::refuse(&refusal, args.json),
    };
    let measured = measure(&ground, opened, environment);
    if args.json {
        super::print_line(&json_line(&measured.to_json()));
    } else {
        let paint = Paint { is_on: wants_colour(color, environment, super::is_terminal()) };
        measured.lines(paint).iter().for_each(|line| super::print_line(line));
    }
    Exit::Clean.code()
}

/// What was opened, and tried, with the privilege there was.
struct Opened {
    guardian: Result<(), String>,
    powers: Powers,
    opens: io::Result<OwnedFd>,
}

fn measure(ground: &Ground, opened: Opened, environment: &Environment) -> Measured {
    let Opened { guardian, powers, opens } = opened;
    let state = nearest(&ground.state_top);
    let tree = scratch_place(ground);
    let mount = |dir: &Result<Dir, FsError>| dir.as_ref().ok()?.own_stat().ok().map(|stat| stat.mount);
    Measured {
        kernel: machine::kernel(),
        backends: backends()
            .iter()
            .map(|backend| (backend.name(), backend.probe().map_err(|error| causes(&error))))
            .collect(),
        limits: machine::limits(),
        settings: machine::settings(),
        standing: powers.standing(),
        powers: match &tree {
            Ok(dir) => powers.try_in(dir),
            Err(_) => Vec::new(),
        },
        hold: hold(opens, &tree),
        guardian,
        means: confine::support(),
        trusted: trusted(ground),
        tree: folder(ground.tree.path(), tree.as_ref()),
        state: folder(&ground.state_top, state.as_ref()),
        state_folder: match ground.existing_state() {
            Ok(Some(_)) => Ok("it is there"),
            Ok(None) => Ok("the first watch of this tree makes it"),
            Err(Refusal { message, .. }) => Err(message),
        },
        on_one_file_system: mount(&tree).is_some() && mount(&tree) == mount(&state),
        confinement: confinement(),
        worker: FilesWorker::start(&ground.tree, true)
            .map(|worker| worker.report().clone())
            .map_err(|error| causes(&error)),
        notifier: notifier(ground.tree.path(), environment),
        has_terminal: std::io::stdin().is_terminal(),
        scriptable: scriptable(&|name| environment.text(name)),
    }
}

/// Whether opens of a file in the tree can be held, as `--hold` does it.
fn hold(opens: io::Result<OwnedFd>, tree: &Result<Dir, FsError>) -> Result<(), String> {
    let opens = opens.map_err(|error| error.to_string())?;
    let tree = tree.as_ref().map_err(|error| causes(error))?;
    hold::cannot_be_held(&opens, tree).map_or(Ok(()), Err)
}

/// The programs that the person trusts, and how each entry fits.
fn trusted(ground: &Ground) -> Result<Vec<(Trusted, Fit)>, String> {
    let Some(folder) = hold::config_folder(ground) else { return Ok(Vec::new()) };
    let all = trust::read(&folder, ground.owner).map_err(|error| error.of(&folder))?;
    Ok(all.into_iter().map(|entry| (entry.check(), entry)).map(|(fit, entry)| (entry, fit)).collect())
}

fn confinement() -> diagnosis::OwnConfinement {
    let machine::Confinement { name, found } = machine::confinement();
    (name, found.map_err(|error| error.to_string()))
}

fn folder(path: &Path, dir: Result<&Dir, &FsError>) -> diagnosis::Ground {
    let bytes = path.as_os_str().as_bytes();
    diagnosis::Ground {
        path: (escaped(bytes), ReportPath::new(bytes.to_vec()).text()),
        file_system: match dir {
            Ok(dir) => machine::file_system(dir).map_err(|error| error.to_string()),
            Err(error) => Err(causes(error)),
        },
        trials: match dir {
            Ok(dir) => trial::try_in(dir).map_err(|error| causes(&error)),
            Err(error) => Err(causes(error)),
        },
    }
}

/// Where scratch files of the tree's file system lie: in its own git directory, or at its top.
fn scratch_place(ground: &Ground) -> Result<Dir, FsError> {
    let git = RelPath::parse(b".git").expect("it is one name");
    // A `.git` that leads elsewhere, or is another file system's, is not gone into.
    let git = ground.repository.as_ref().and_then(|_| ground.tree.open_dir(&git).ok());
    git.map_or_else(|| ground.tree.dir().try_clone(), Ok)
}

/// The folder, or the nearest above it that exists.
fn nearest(path: &Path) -> Result<Dir, FsError> {
    let mut tried = Dir::open_ambient(path);
    for above in path.ancestors().skip(1) {
        match &tried {
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => tried = Dir::open_ambient(above),
            _ => break,
        }
    }
    tried
}

fn notifier(tree: &Path, environment: &Environment) -> Result<String, String> {
    if !NOTIFIER.has_desktop(&|name| environment.is_set(name)) {
        return Err("the environment names no desktop".to_owned());
    }
    // A program of the repository's is not run in the notifier's name.
    let program = environment.bytes("PATH").and_then(|search| find(NOTIFIER, search, &[tree.to_path_buf()]));
    match program {
        Some(path) => Ok(escaped(path.as_os_str().as_bytes())),
        None => Err(format!("{} is in no folder of PATH", NOTIFIER.name())),
    }
}
