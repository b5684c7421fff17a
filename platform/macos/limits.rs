//! Limits and file systems.

use std::io;
use std::os::fd::BorrowedFd;

use crate::machine::{FileSystem, Kind, Limit};

/// Polling has none.
pub(crate) fn limits() -> Vec<(&'static str, Limit)> {
    Vec::new()
}

pub(crate) fn file_system(dir: BorrowedFd<'_>) -> io::Result<FileSystem> {
    let name = rustix::fs::fstatfs(dir)?.f_fstypename;
    let name: Vec<u8> = name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    let kind = match &name[..] {
        b"apfs" | b"hfs" | b"msdos" | b"exfat" => Kind::Local,
        b"nfs" | b"smbfs" | b"afpfs" | b"webdav" => Kind::Network,
        name if name.windows(4).any(|part| part == b"fuse") => Kind::UserSpace,
        _ => Kind::Unknown,
    };
    Ok(FileSystem { name: String::from_utf8_lossy(&name).into_owned(), kind })
}

pub(crate) fn confinement_version() -> io::Result<u32> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Landlock"))
}
