//! Copies the content of one open file to another, sharing blocks where the file system can.
//!
//! Promise: never more than `max` bytes arrive, however the source grows meanwhile; memory use does not depend on size.
//! Limit: the content is that of no single moment if somebody writes to the source; whoever needs to know what was copied
//! takes the digest of the copy. macOS shares blocks with a new file only, so that [`copy_new`] does there and [`copy`] not.
//! Source: ioctl_ficlone(2), copy_file_range(2), clonefile(2).

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crate::attributes::{Flags, chmod, set_flags};
use crate::dir::{Dir, FsError, on, stat_of};
use crate::xattr::{self, Xattrs};
use crate::{fault, host};

/// The bits of a copy.
const PRIVATE: u32 = 0o600;

/// What one call copies within the kernel: a signal or the end of the process is noticed between two.
const CHUNK: usize = 8 << 20;

/// Copies from the start of `from` to the start of `to`, which must be empty, at most `max` bytes; returns how many.
/// A longer source is cut there. The positions of both files stay as they are.
pub fn copy(from: &File, to: &File, max: u64) -> io::Result<u64> {
    fault::point("share blocks")?;
    if from.metadata()?.len() <= max && host::share_blocks(from.as_fd(), to.as_fd()).is_ok() {
        let length = to.metadata()?.len();
        // It may have grown between the two calls.
        if length > max {
            to.set_len(max)?;
        }
        return Ok(length.min(max));
    }
    let copied = copy_in_kernel(from, to, max)?;
    copy_through_memory(from, to, copied, max)
}

/// Makes the file `name` in `dir` with the content of `from`, cut at `max` bytes, and returns it open for reading and
/// writing at its start. It has the bits `0600`, no flags, and none of the source's attributes. On an error there is no such
/// file, unless there was one before.
///
/// Limit: where the system shares blocks by cloning a whole file, the copy has the source's bits for a moment: `dir` must be
/// one that nobody else can enter.
pub fn copy_new(from: &File, max: u64, dir: &Dir, name: &[u8]) -> Result<File, FsError> {
    if let Some(file) = clone(from, max, dir, name) {
        return Ok(file);
    }
    let to = dir.create_new(name, PRIVATE)?;
    match copy(from, &to, max) {
        Ok(_) => Ok(to),
        Err(error) => {
            let _ = dir.unlink(name);
            Err(on("copy", name)(error))
        }
    }
}

/// `None` if it cannot be done, and then there is no such file.
fn clone(from: &File, max: u64, dir: &Dir, name: &[u8]) -> Option<File> {
    let stat = stat_of(from.as_fd()).ok()?;
    // What cannot be changed could not be made a copy of its own either.
    if stat.size > max || stat.immutable || stat.append_only {
        return None;
    }
    fault::point("share blocks").ok()?;
    host::clone_new(from.as_fd(), dir.as_fd(), name).ok()?;
    // It has the bits of its source, which need not let us write.
    let made = dir.open_read(name).and_then(|file| strip(&file)).and_then(|()| dir.open_own(name)).and_then(|file| {
        // It may have grown between the two calls.
        if stat_of(file.as_fd())?.size > max {
            crate::file::truncate(&file, name, max)?;
        }
        Ok(file)
    });
    if made.is_err() {
        let _ = dir.unlink(name);
    }
    made.ok()
}

/// Leaves nothing of the source but its content.
fn strip(file: &File) -> Result<(), FsError> {
    set_flags(file, Flags::default())?;
    chmod(file, PRIVATE)?;
    xattr::set_all(file, &Xattrs::new())
}

/// Stops without an error where the kernel cannot: other file systems, an old kernel, files of /proc that have no size.
fn copy_in_kernel(from: &File, to: &File, max: u64) -> io::Result<u64> {
    let mut copied = 0;
    while copied < max {
        let length = usize::try_from(max - copied).map_or(CHUNK, |left| left.min(CHUNK));
        fault::point("copy")?;
        match host::copy_range(from.as_fd(), to.as_fd(), copied, length) {
            Ok(0) => break,
            Ok(count) => copied += count as u64,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::NOSPC) => return Err(rustix::io::Errno::NOSPC.into()),
            // The slow way meets the same error again if it is one of the file and not of the call.
            Err(_) => break,
        }
    }
    Ok(copied)
}

fn copy_through_memory(from: &File, to: &File, start: u64, max: u64) -> io::Result<u64> {
    let mut copied = start;
    let mut buffer = vec![0; 64 << 10];
    while copied < max {
        let length = usize::try_from(max - copied).map_or(buffer.len(), |left| left.min(buffer.len()));
        match from.read_at(&mut buffer[..length], copied) {
            Ok(0) => break,
            Ok(count) => {
                fault::point("copy")?;
                to.write_all_at(&buffer[..count], copied)?;
                copied += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom, Write};

    fn pair(content: &[u8]) -> (tempfile::TempDir, File, File) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let mut from = dir.create_new(b"from", 0o600).expect("creates");
        from.write_all(content).expect("writes");
        let to = dir.create_new(b"to", 0o600).expect("creates");
        (temp, from, to)
    }

    fn content(mut file: &File) -> Vec<u8> {
        let mut all = Vec::new();
        file.seek(SeekFrom::Start(0)).expect("seeks");
        file.read_to_end(&mut all).expect("reads");
        all
    }

    #[test]
    fn all_bytes_arrive_whatever_the_position_of_the_source() {
        let text: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let (_temp, from, to) = pair(&text);
        assert_eq!(copy(&from, &to, u64::MAX).expect("copies"), text.len() as u64);
        assert!(content(&to) == text, "the bytes differ");
    }

    #[test]
    fn a_new_copy_has_the_content_and_nothing_else_of_its_source() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| (n * 3) as u8).collect();
        let (temp, from, _to) = pair(&text);
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let attributes = Xattrs::from([(host::USER_ATTRIBUTE.to_vec(), b"1".to_vec())]);
        xattr::set_all(&from, &attributes).expect("sets");
        chmod(&from, 0o4755).expect("chmods");
        for (name, max, expected) in [(&b"whole"[..], u64::MAX, &text[..]), (b"cut", 70_000, &text[..70_000])] {
            let copied = copy_new(&from, max, &dir, name).expect("copies");
            assert!(content(&copied) == expected, "the bytes differ");
            let stat = stat_of(copied.as_fd()).expect("stats");
            assert_eq!((stat.mode, stat.size), (0o600, expected.len() as u64));
            assert_eq!(xattr::read_file(&copied).expect("reads"), Xattrs::new());
            copied.write_all_at(b"ours", 0).expect("is open for writing");
            assert_eq!(dir.stat(name).expect("stats").expect("exists").id, stat.id);
        }
        assert!(content(&from) == text, "the source has changed");
    }

    #[test]
    fn a_new_copy_takes_no_name_that_is_taken() {
        let (temp, from, _to) = pair(b"x");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let error = copy_new(&from, 10, &dir, b"to").expect_err("the name is taken");
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_longer_source_is_cut_at_the_cap() {
        let (_temp, from, to) = pair(b"0123456789");
        assert_eq!(copy(&from, &to, 4).expect("copies"), 4);
        assert_eq!(content(&to), b"0123");
        let (_temp, from, to) = pair(b"0123");
        assert_eq!(copy(&from, &to, 4).expect("copies"), 4);
        assert_eq!(content(&to), b"0123");
    }

    #[test]
    fn the_way_through_memory_gives_the_same_and_goes_on_where_the_kernel_stopped() {
        let text: Vec<u8> = (0..150_000_u32).map(|n| (n * 7) as u8).collect();
        let (_temp, from, to) = pair(&text);
        to.write_all_at(&text[..1000], 0).expect("writes");
        assert_eq!(copy_through_memory(&from, &to, 1000, 140_000).expect("copies"), 140_000);
        assert!(content(&to) == text[..140_000], "the bytes differ");
    }

    #[test]
    fn a_file_that_claims_to_be_empty_is_copied_all_the_same() {
        let (_temp, _from, to) = pair(b"");
        let Ok(from) = File::open("/proc/self/status") else { return };
        assert_eq!(from.metadata().expect("stats").len(), 0, "the point of this test");
        let copied = copy(&from, &to, 20).expect("copies");
        assert_eq!((copied, content(&to).len()), (20, 20));
    }
}
