//! `--log`: which collectors are told of what happens, and the way to each.
//!
//! Promise: a collector that is named and not there is a refusal, before the journal is opened; no file of the tree, and
//! none that belongs to the state of a watch, becomes one. Limit: that a file lies in the tree is told by its folder's real
//! path, which another mount of the tree has, too.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::ambient;
use platform::datagram::{Datagrams, Outlet, journal_socket, log_socket};
use platform::environment::Environment;

use crate::journal::forward::{About, AppendedFile, Couriers, Destination, Format};
use crate::state::StateFolder;
use crate::text::{encode, escaped};

use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;
use super::log_line::sentence;

/// The file in the state folder.
const FILE: &str = "events.jsonl";

/// A collector as the person named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    kind: Kind,
    /// Its socket or file, if not the usual one.
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Journald,
    Syslog,
    File,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Journald, Kind::Syslog, Kind::File];

    const fn name(self) -> &'static str {
        match self {
            Kind::Journald => "journald",
            Kind::Syslog => "syslog",
            Kind::File => "file",
        }
    }
}

/// A word of `--log`.
pub fn parse(word: &str) -> Result<Collector, String> {
    let (name, path) = word.split_once('=').map_or((word, None), |(name, path)| (name, Some(path)));
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind =
        kind.ok_or_else(|| "the collectors are journald, syslog and file, each with =PATH or without".to_owned())?;
    if path.is_some_and(str::is_empty) {
        return Err("there is no path after the =".to_owned());
    }
    Ok(Collector { kind, path: path.map(PathBuf::from) })
}

/// What every notice says of the watch in this tree.
pub fn about(ground: &Ground) -> About {
    let root = encode(ground.tree.path().as_os_str().as_bytes());
    About { pid: platform::process::own_pid(), root, describe: sentence }
}

/// Finds the way to each collector, and starts what sends to them.
pub fn start(
    wanted: &[Collector],
    ground: &Ground,
    state: &StateFolder,
    environment: &Environment,
) -> Result<Couriers, Refusal> {
    let mut destinations: Vec<Destination> = Vec::new();
    for (at, collector) in wanted.iter().enumerate() {
        if !wanted[..at].contains(collector) {
            destinations.push(collector.destination(ground, state, environment)?);
        }
    }
    Couriers::start(destinations).map_err(|error| refused("--log", &format!("cannot start a thread: {error}")))
}

impl Collector {
    fn destination(
        &self,
        ground: &Ground,
        state: &StateFolder,
        environment: &Environment,
    ) -> Result<Destination, Refusal> {
        let path = self.path.as_ref().map(|path| environment.directory.join(path));
        let name = match &path {
            Some(path) => format!("{} ({})", self.kind.name(), escaped(path.as_os_str().as_bytes())),
            None => self.kind.name().to_owned(),
        };
        let (format, outlet) = match self.kind {
            Kind::Journald => (Format::Journald, socket(&name, path.as_deref().or_else(|| journal_socket()))?),
            Kind::Syslog => (Format::Syslog, socket(&name, path.as_deref().or_else(|| log_socket()))?),
            Kind::File => (Format::Lines, file(&name, path.as_deref(), ground, state)?),
        };
        Ok(Destination { name, format, outlet })
    }
}

fn socket(name: &str, path: Option<&Path>) -> Result<Box<dyn Outlet>, Refusal> {
    let path = path.ok_or_else(|| refused(name, "this system has none that takes datagrams"))?;
    let connected = Datagrams::connect(path).map_err(|error| {
        refused(name, &format!("nobody takes records at {}: {error}", escaped(path.as_os_str().as_bytes())))
    })?;
    Ok(Box::new(connected))
}

fn file(name: &str, path: Option<&Path>, ground: &Ground, state: &StateFolder) -> Result<Box<dyn Outlet>, Refusal> {
    let opened = match path {
        Some(path) => {
            let folder = path.parent().ok_or_else(|| refused(name, "that is no file"))?;
            let folder = ambient::resolve(folder).map_err(|error| refused(name, &causes(&error)))?;
            let inside =
                |of: &Path| folder.starts_with(of) || ambient::resolve(of).is_ok_and(|of| folder.starts_with(of));
            if inside(ground.tree.path()) {
                return Err(refused(name, "it lies in the tree that is watched"));
            }
            if inside(&ground.state_top) {
                return Err(refused(name, "it lies in the state folder; without a path there is one of its own there"));
            }
            let file_name = path.file_name().ok_or_else(|| refused(name, "that is no file"))?;
            AppendedFile::at(&folder.join(file_name), ground.owner)
        }
        None => state
            .dir()
            .try_clone()
            .map_err(|error| error.source)
            .and_then(|dir| AppendedFile::open(dir, FILE.as_bytes(), ground.owner)),
    };
    Ok(Box::new(opened.map_err(|error| refused(name, &error.to_string()))?))
}

fn refused(name: &str, reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Log,
        format!("{name} cannot be told of what happens: {}", escaped(reason.as_bytes())),
        "start that collector, name its socket or a file of your own outside the tree (--log file=PATH), or leave it out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_a_name_and_perhaps_a_path() {
        let known = parse("syslog=/run/log=1").expect("is one");
        assert_eq!((known.kind, known.path), (Kind::Syslog, Some(PathBuf::from("/run/log=1"))));
        assert_eq!(parse("journald").expect("is one").path, None);
        for wrong in ["", "journal", "file=", "=x", "SYSLOG"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
