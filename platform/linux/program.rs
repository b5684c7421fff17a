//! The program of a process as /proc shows it.
//!
//! Promise: a file of its code counts as root's if the file at that path, opened by us, is root's and the very one that is
//! mapped: whoever has mounts of its own chooses what a path reads as.
//! Limit: the kernel names a mapped file by the device of its file system and its inode number. Where that is not what statx(2)
//! says (btrfs, some overlays), or where subvolumes have the same numbers (bcachefs), no file can be told to be another, and
//! nothing is taken for root's.
//! Source: proc_pid_maps(5), proc_pid_exe(5), user_namespaces(7); Linux fs/proc/task_mmu.c `show_map_vma`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags, statx};

use super::limits::file_system;
use crate::program::{Influence, Mapped, executable_files, find_loader_variable, has_made_code, parse_tracer};

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
    let program = Found::at(Path::new(&format!("/proc/{pid}/exe")))?;
    let maps = read("maps")?;
    let files = executable_files(&maps).ok_or(io::ErrorKind::InvalidData)?;
    // What the process is said to run may be set by itself (PR_SET_MM_EXE_FILE), once its own code is elsewhere.
    if has_made_code(&maps) || !files.iter().any(|file| program.is(file)) {
        return Ok(Some(Influence::Code(b"[memory]".to_vec())));
    }
    let foreign = files.iter().find(|file| !program.is(file) && !is_roots(file));
    Ok(foreign.map(|file| Influence::Code(file.path.to_vec())))
}

/// A file we found at a path.
struct Found {
    file: OwnedFd,
    statx: Statx,
}

impl Found {
    fn at(path: &Path) -> io::Result<Self> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let statx = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        Ok(Self { file, statx })
    }

    /// Whether this is the file that is mapped; `false` if that cannot be told.
    fn is(&self, mapped: &Mapped<'_>) -> bool {
        mapped.device == (self.statx.stx_dev_major, self.statx.stx_dev_minor)
            && mapped.ino == self.statx.stx_ino
            && file_system(self.file.as_fd()).is_ok_and(|found| found.name != "bcachefs")
    }
}

/// Whether the file is the one at its path, and only root can write it.
fn is_roots(mapped: &Mapped<'_>) -> bool {
    let found = Found::at(Path::new(OsStr::from_bytes(mapped.path)));
    found.is_ok_and(|found| found.is(mapped) && found.statx.stx_uid == 0 && found.statx.stx_mode & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::ffi::OsStringExt;
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

    /// Python with the first page of its standard error mapped to be run, once it is.
    const MAPPING: &str = "exec /usr/bin/python3 -I -c 'import mmap,sys
m=mmap.mmap(2,4096,flags=mmap.MAP_PRIVATE,prot=mmap.PROT_READ|mmap.PROT_EXEC)
print(1,flush=True)
sys.stdin.read()'";

    fn mapping(script: &str, arguments: &[&Path]) -> Child {
        let mut command = Command::new("sh");
        command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.args(["-c", script]).args(arguments).spawn().expect("starts");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it is mapped");
        child
    }

    #[test]
    fn a_file_that_reads_as_one_of_the_systems_by_mounts_of_its_own_is_not_taken_for_it() {
        let may = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
        if !may.is_ok_and(|status| status.success()) || !Path::new("/usr/bin/python3").exists() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let fake = folder.path().join("fake");
        fs::write(&fake, vec![0xcc; 8192]).expect("writes");
        let real = fs::canonicalize("/bin/true").expect("it is there");
        let mut plain = mapping(&format!("exec 2<\"$0\"; {MAPPING}"), &[&real]);
        assert_eq!(influence(plain.id()).expect("looks"), None, "it is root's");
        let script = "exec 4</proc/self/ns/mnt; exec unshare -m sh -c 'mount --bind \"$0\" \"$1\" && exec 2<\"$1\" 5</proc/self/ns/mnt && \
             exec nsenter --mount=/proc/self/fd/4 sh -c \"$2\"' \"$0\" \"$1\" \"$2\"";
        let mut spoof = mapping(script, &[&fake, &real, Path::new(MAPPING)]);
        let maps = fs::read_to_string(format!("/proc/{}/maps", spoof.id())).expect("reads");
        assert!(maps.lines().any(|line| line.ends_with(&format!(" {}", real.display()))), "it reads so: {maps}");
        assert_eq!(influence(spoof.id()).expect("looks"), Some(Influence::Code(real.into_os_string().into_vec())));
        for child in [&mut plain, &mut spoof] {
            drop(child.stdin.take());
            child.wait().expect("ends");
        }
    }
}
