//! Limits and file systems.

use std::io;
use std::os::fd::BorrowedFd;

use super::sys::sandbox;
use crate::machine::{Confinement, FileSystem, Limit, kind_on_macos};

/// Polling has none.
pub(crate) fn limits() -> Vec<(&'static str, Limit)> {
    Vec::new()
}

pub(crate) fn file_system(dir: BorrowedFd<'_>) -> io::Result<FileSystem> {
    let name = rustix::fs::fstatfs(dir)?.f_fstypename;
    let name: Vec<u8> = name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    Ok(FileSystem { name: String::from_utf8_lossy(&name).into_owned(), kind: kind_on_macos(&name) })
}

pub(crate) fn own_confinement() -> Confinement {
    let found = sandbox::is_in_one().and_then(|is_in_one| match is_in_one {
        true => Err(io::Error::other("this process is in a sandbox already, and can enter no other")),
        false => Ok("this process is in no sandbox yet, so that a worker of it can enter one".to_owned()),
    });
    Confinement { name: "seatbelt", found }
}
