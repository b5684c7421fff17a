//! The program that a process runs: its file, read through the process itself, and what else may have a say in it.
//!
//! Promise: the bytes of [`open`] are those the process runs, whatever lies at the program's path now.
//! Limit: only what a look from outside shows. A process that was traced for a moment earlier, whose memory another wrote, one
//! that is talked into something (arguments, its own settings, a script), or memory that was made executable later leave no
//! trace here; the variables it was started with lie in its own memory, and are what it leaves there.
//! Source: proc_pid_exe(5), proc_pid_environ(5), proc_pid_status(5), proc_pid_maps(5), ld.so(8), mount_namespaces(7).

use std::fs::File;
use std::io;

use crate::host;

/// Variables by which the dynamic loader takes code from elsewhere.
const LOADER_VARIABLES: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH"];

/// What has a say in a process besides its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Influence {
    /// This process traces it.
    Tracer(u32),
    /// It was started with a variable by which the loader takes code from elsewhere.
    Variable(&'static str),
    /// It runs code of a file that others than root can write, or that cannot be told to be the one at its path.
    Code(Vec<u8>),
    /// It lives in another mount namespace, where paths mean something else.
    OtherMounts,
}

/// The file that the process runs, open for reading.
pub fn open(pid: u32) -> io::Result<File> {
    host::open_program(pid)
}

/// What has a say in the process besides its program; `None` if nothing is seen to.
pub fn influence(pid: u32) -> io::Result<Option<Influence>> {
    host::influence(pid)
}

/// The tracer that `/proc/PID/status` names. An error in it is an error: nobody is not the same as not known.
pub fn parse_tracer(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// The loader's variable that is among those of `/proc/PID/environ`, set to something.
pub fn find_loader_variable(environ: &[u8]) -> Option<&'static str> {
    let mut variables = environ.split(|byte| *byte == 0);
    variables.find_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&variable[..at], &variable[at + 1..]);
        LOADER_VARIABLES.into_iter().find(|known| known.as_bytes() == name && !value.is_empty())
    })
}

/// Whether `/proc/PID/maps` shows executable memory that is of no file: code that was made, or moved there.
pub fn has_made_code(maps: &[u8]) -> bool {
    maps.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let (permissions, inode) = (fields.nth(1), fields.nth(2));
        let name = fields.next();
        let is_code = permissions.is_some_and(|permissions| permissions.get(2) == Some(&b'x'));
        is_code && inode == Some(b"0") && !matches!(name, Some(b"[vdso]" | b"[vsyscall]"))
    })
}

/// A file of which a process has executable memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapped<'m> {
    /// Where its path leads in the mounts it was opened in: they need not be ours.
    pub path: &'m [u8],
    /// Major and minor number of its file system's device.
    pub device: (u32, u32),
    /// Its number there.
    pub ino: u64,
}

/// The files of which `/proc/PID/maps` shows executable memory, as they stand there; `None` if that is not understood.
pub fn executable_files(maps: &[u8]) -> Option<Vec<Mapped<'_>>> {
    let mut files = Vec::new();
    for line in maps.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        files.extend(executable_file(line)?);
    }
    files.sort_unstable();
    files.dedup();
    Some(files)
}

/// `address perms offset major:minor inode path`; the path may hold spaces, and is none for memory without a file. `None`
/// within: not executable, or of no file.
fn executable_file(line: &[u8]) -> Option<Option<Mapped<'_>>> {
    let mut rest = line;
    let mut next = || {
        let rest_now = rest.trim_ascii_start();
        let end = rest_now.iter().position(|byte| *byte == b' ').unwrap_or(rest_now.len());
        let (field, after) = rest_now.split_at(end);
        rest = after;
        std::str::from_utf8(field).ok()
    };
    let (_address, permissions, _offset, device, ino) = (next()?, next()?, next()?, next()?, next()?);
    let path = rest.trim_ascii_start();
    let (major, minor) = device.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let mapped = Mapped { path, device: (number(major)?, number(minor)?), ino: ino.parse().ok()? };
    Some((permissions.as_bytes().get(2) == Some(&b'x') && mapped.ino != 0).then_some(mapped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn code_that_is_of_no_file_is_made_code() {
        let files = "55-56 r-xp 00000000 08:01 42 /usr/bin/git\n7f-80 r-xp 00000000 00:00 0 [vdso]\nff-100 --xp 00000000 00:00 0 [vsyscall]\n";
        let data = "60-61 rw-p 00000000 00:00 0 [heap]\n62-63 rw-p 00000000 00:00 0 \n";
        assert!(!has_made_code(format!("{files}{data}").as_bytes()));
        for line in
            ["70-71 rwxp 00000000 00:00 0 ", "70-71 r-xp 00000000 00:00 0", "70-71 r-xp 00000000 00:00 0 [anon:a]"]
        {
            assert!(has_made_code(format!("{files}{line}\n{data}").as_bytes()), "{line}");
        }
    }

    #[test]
    fn the_tracer_is_the_number_of_its_line() {
        assert_eq!(parse_tracer(b"Name:\ta\nTracerPid:\t4242\nUid:\t1\n"), Some(4242));
        assert_eq!(parse_tracer(b"TracerPid:\t0\n"), Some(0));
        assert_eq!(parse_tracer(b"Name:\ta\n"), None);
        assert_eq!(parse_tracer(b"TracerPid:\tx\n"), None);
    }

    #[test]
    fn a_variable_of_the_loader_counts_if_it_is_set_to_something() {
        assert_eq!(find_loader_variable(b"A=1\0LD_PRELOAD=/tmp/x.so\0B=2\0"), Some("LD_PRELOAD"));
        assert_eq!(find_loader_variable(b"LD_AUDIT=x"), Some("LD_AUDIT"));
        assert_eq!(find_loader_variable(b"LD_LIBRARY_PATH=.\0"), Some("LD_LIBRARY_PATH"));
        assert_eq!(find_loader_variable(b"LD_PRELOAD=\0MY_LD_PRELOAD=x\0A=LD_PRELOAD=x\0LD_BIND_NOW=1"), None);
    }

    #[test]
    fn files_with_executable_memory_are_found_whatever_their_names() {
        let maps = b"55d0-55d1 r--p 00000000 fe:01 12 /usr/bin/git\n\
                     55d1-55d2 r-xp 00001000 fe:01 12   /usr/bin/git\n\
                     55d2-55d3 r-xp 00002000 fe:01 12   /usr/bin/git\n\
                     7f00-7f01 r-xp 00000000 fe:01 13   /tmp/a b.so (deleted)\n\
                     7f02-7f03 rwxp 00000000 00:00 0 \n\
                     7f03-7f04 r-xp 00000000 00:00 0    [vdso]\n\
                     7f04-7f05 rw-p 00000000 fe:01 14   /usr/lib/data\n";
        let of = |path, ino| Mapped { path, device: (0xfe, 1), ino };
        assert_eq!(
            executable_files(maps),
            Some(vec![of(&b"/tmp/a b.so (deleted)"[..], 13), of(&b"/usr/bin/git"[..], 12)])
        );
        assert_eq!(executable_files(b"7f00-7f01 r-xp 00000000 fe:01 x /a"), None, "nothing is passed over");
        assert_eq!(executable_files(b"7f00-7f01 r-xp 00000000 fe01 13 /a"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_tracer(&bytes), find_loader_variable(&bytes), executable_files(&bytes), has_made_code(&bytes));
        }
    }
}
