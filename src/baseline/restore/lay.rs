//! The accepted state, laid beside its place under a temporary name.
//!
//! Promise: content, owner and attributes are set before the bits, so that a set-id bit is never on a file of the wrong
//! owner or content; all is durable before it gets its name. Limit: what only a privileged process may set is left out
//! and named. Source: chown(2) (set-id bits go), acl(5) (an ACL rewrites group bits, so the bits come after).

use std::fs::File;
use std::io::Seek as _;
use std::os::fd::AsFd as _;

use platform::dir::stat_of;
use platform::{Dir, FsError, attributes, xattr};

use super::super::snapshot::{Content, Snapshot};
use super::Restore;
use super::error::RestoreError;
use crate::digest::Digest;
use crate::store::StoreError;

/// Set-user-id and set-group-id.
const SET_ID: u32 = 0o6000;

/// What was laid.
pub(super) struct Laid {
    /// The open file, if it is one.
    file: Option<File>,
    /// What could not be set, if something could not.
    pub(super) inexact: Option<RestoreError>,
}

impl Restore<'_> {
    /// Lays the accepted state beside; removes what it began if that fails.
    pub(super) fn lay(&self, dir: &Dir, temporary: &[u8]) -> Result<Laid, RestoreError> {
        let laid = self.lay_content(dir, temporary);
        if laid.is_err() {
            // If the name was taken, what has it is not ours; nobody can have guessed it.
            let _ = dir.unlink(temporary).or_else(|_| dir.remove_dir(temporary));
        }
        laid
    }

    fn lay_content(&self, dir: &Dir, temporary: &[u8]) -> Result<Laid, RestoreError> {
        let not_made = |file_type| RestoreError::NotMade { path: self.place.path.clone(), file_type };
        match &self.accepted.content {
            Content::Regular { digest, .. } => {
                let file = dir.create_new(temporary, 0o600)?;
                self.objects.copy_to(*digest, &file).map_err(|source| self.no_content(source))?;
                let laid = Laid::attributes(file, self.accepted)?;
                let file = laid.file.as_ref().expect("it is a file");
                attributes::sync(file)?;
                if !reads_back(file, *digest) {
                    return Err(RestoreError::Contended { attempts: 1 });
                }
                Ok(laid)
            }
            Content::Symlink { text } => {
                dir.symlink(text, temporary)?;
                let now = dir.stat(temporary)?.map(|stat| (stat.uid, stat.gid));
                let wanted = (self.accepted.uid, self.accepted.gid);
                let owned = if now == Some(wanted) { Ok(()) } else { dir.chown(temporary, wanted.0, wanted.1) };
                Ok(Laid { file: None, inexact: owned.err().map(|source| RestoreError::NotExact { source }) })
            }
            Content::Directory => Laid::directory(&dir.make_dir(temporary, 0o700)?, self.accepted),
            Content::Fifo => Err(not_made("FIFO")),
            Content::Socket => Err(not_made("socket")),
            Content::Device => Err(not_made("device")),
            Content::Absent => Err(not_made("nothing")),
            Content::Unread { .. } => Err(not_made("file that was not read")),
        }
    }

    fn no_content(&self, source: StoreError) -> RestoreError {
        RestoreError::Content { path: self.place.path.clone(), source }
    }
}

/// Whether the file has the content it was given. Its name can be seen and opened by others of the same user.
fn reads_back(mut file: &File, digest: Digest) -> bool {
    file.rewind().and_then(|()| Digest::of_reader(&mut file, u64::MAX - 1)).is_ok_and(|(found, _)| found == digest)
}

impl Laid {
    /// Gives an open directory the owner and bits of `accepted`.
    pub(super) fn directory(below: &Dir, accepted: &Snapshot) -> Result<Self, RestoreError> {
        let owned = match below.own_stat()? {
            stat if (stat.uid, stat.gid) == (accepted.uid, accepted.gid) => Ok(()),
            _ => attributes::chown(below, accepted.uid, accepted.gid),
        };
        attributes::chmod(below, accepted.mode)?;
        Ok(Self { file: None, inexact: owned.err().map(|source| RestoreError::NotExact { source }) })
    }

    /// Gives an open file the owner, attributes and bits of `accepted`, in the order that keeps set-id bits safe.
    pub(super) fn attributes(file: File, accepted: &Snapshot) -> Result<Self, RestoreError> {
        let mut refused: Option<FsError> = None;
        let stat = stat_of(file.as_fd())?;
        let mut owned = (stat.uid, stat.gid) == (accepted.uid, accepted.gid);
        if !owned {
            match attributes::chown(&file, accepted.uid, accepted.gid) {
                Ok(()) => owned = true,
                Err(error) => refused = Some(error),
            }
        }
        if let Err(error) = xattr::set_all(&file, &accepted.xattrs) {
            // Without room for them this is no restore; without the right to set them it is the best there is.
            if !is_refusal(&error) {
                return Err(error.into());
            }
            refused.get_or_insert(error);
        }
        let mode = if owned { accepted.mode } else { accepted.mode & !SET_ID };
        attributes::chmod(&file, mode)?;
        Ok(Self { file: Some(file), inexact: refused.map(|source| RestoreError::NotExact { source }) })
    }

    /// Sets the flags of `accepted`, once the file has its name: before, they would refuse the renaming.
    pub(super) fn set_flags(&self, accepted: &Snapshot) -> Option<RestoreError> {
        let flags = attributes::Flags { immutable: accepted.immutable, append_only: accepted.append_only };
        match &self.file {
            Some(file) if flags != attributes::Flags::default() => {
                attributes::set_flags(file, flags).err().map(|source| RestoreError::NotExact { source })
            }
            _ => None,
        }
    }
}

fn is_refusal(error: &FsError) -> bool {
    error.source.kind() == std::io::ErrorKind::PermissionDenied || error.is_unsupported()
}
