//! Not on this system: no way to open the program of a process through the process is used here.

use std::fs::File;
use std::io;

use crate::program::Influence;

pub(crate) fn open_program(_pid: u32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn influence(_pid: u32) -> io::Result<Option<Influence>> {
    Err(io::ErrorKind::Unsupported.into())
}
