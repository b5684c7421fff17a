//! The program of a process as /proc shows it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::program::{Influence, executable_files, find_loader_variable, has_made_code, parse_tracer};

pub(crate) fn open_program(pid: u32) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(format!("/proc/{pid}/exe"), flags, Mode::empty())?))
}

pub(crate) fn influence(pid: u32) -> io::Result<Option<Influence>> {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}"));
    let tracer = parse_tracer(&read("status")?).ok_or(io::ErrorKind::InvalidData)?;
    if tracer != 0 {
        return Ok(Some(Influence::Tracer(tracer)));
    }
    if let Some(variable) = find_loader_variable(&read("environ")?) {
        return Ok(Some(Influence::Variable(variable)));
    }
    for namespace in ["mnt", "user"] {
        if fs::read_link(format!("/proc/{pid}/ns/{namespace}"))? != fs::read_link(format!("/proc/self/ns/{namespace}"))?
        {
            return Ok(Some(Influence::OtherMounts));
        }
    }
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    let maps = read("maps")?;
    let files = executable_files(&maps);
    // What the process is said to run may be set by itself (PR_SET_MM_EXE_FILE), once its own code is elsewhere.
    if has_made_code(&maps) || !files.contains(&program.as_os_str().as_bytes()) {
        return Ok(Some(Influence::Code(b"[memory]".to_vec())));
    }
    let foreign = files.into_iter().find(|file| {
        let file = Path::new(OsStr::from_bytes(file));
        file != program && !is_roots(file)
    });
    Ok(foreign.map(|file| Influence::Code(file.to_vec())))
}

/// Whether the file is there, and only root can write it.
fn is_roots(file: &Path) -> bool {
    rustix::fs::statat(CWD, file, AtFlags::empty()).is_ok_and(|stat| stat.st_uid == 0 && stat.st_mode & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, ChildStdin, Command, Stdio};

    /// A program that waits for its input to end, and has answered once, so that it surely runs.
    fn running(name: &str, value: &str) -> (Child, ChildStdin) {
        use std::io::Write;
        let mut command = Command::new("cat");
        command
            .env_remove("LD_LIBRARY_PATH")
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(b"x").expect("writes");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("answers");
        (child, input)
    }

    #[test]
    fn the_file_is_the_one_that_runs_even_if_its_name_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("program");
        fs::copy("/bin/cat", &copy).expect("copies");
        let ino = fs::metadata(&copy).expect("stats").ino();
        let mut command = Command::new(&copy);
        command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::piped());
        // A child that another test is just starting may have the copy open for writing for a moment.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut child = loop {
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && std::time::Instant::now() < end => {}
                other => break other.expect("starts"),
            }
        };
        fs::remove_file(&copy).expect("removes");
        fs::copy("/bin/true", &copy).expect("another takes its place");
        assert_eq!(open_program(child.id()).expect("opens").metadata().expect("stats").ino(), ino);
        assert!(matches!(influence(child.id()).expect("looks"), None | Some(Influence::Code(_))));
        drop(child.stdin.take());
        child.wait().expect("ends");
        assert!(open_program(child.id()).is_err(), "it has ended");
    }

    #[test]
    fn a_plain_program_of_the_system_is_its_own_and_one_with_a_preload_is_not() {
        let (mut plain, input) = running("HARMLESS", "1");
        assert_eq!(influence(plain.id()).expect("looks"), None);
        drop(input);
        plain.wait().expect("ends");
        // The loader says that it cannot be loaded, and goes on.
        let (mut loaded, input) = running("LD_PRELOAD", "/nonexistent/x.so");
        assert_eq!(influence(loaded.id()).expect("looks"), Some(Influence::Variable("LD_PRELOAD")));
        drop(input);
        loaded.wait().expect("ends");
    }
}
