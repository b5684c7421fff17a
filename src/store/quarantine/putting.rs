//! The way back out of quarantine, for the person who wants something after all.

use std::fs::File;
use std::io::Read as _;

use platform::{Dir, attributes, copy, random};

use super::super::about::{About, Held};
use super::{IfTaken, Quarantine, QuarantineError, QuarantineId, bytes};

impl Quarantine {
    /// Puts the thing back as `name` in `dir`, with its permission bits but without set-id ones, and as ours. A copy stays
    /// here, too; what was moved here leaves.
    pub fn put_back(
        &self,
        id: &QuarantineId,
        dir: &Dir,
        name: &[u8],
        if_taken: IfTaken,
    ) -> Result<(), QuarantineError> {
        let about = self.about(id)?;
        if about.held == Held::Moved {
            let entry = self.dir.open_dir(id.as_str().as_bytes())?;
            if entry.stat(b"content")?.is_none() {
                return Err(QuarantineError::NoContent { id: id.clone() });
            }
            self.place(&entry, b"content", dir, name, if_taken)?;
            dir.sync()?;
            return Ok(entry.sync()?);
        }
        let content = self.content(id)?;
        let temporary = format!(".keep-{}", random::hex12().map_err(bytes("name"))?).into_bytes();
        let placed = self.lay_beside(&about, &content, dir, &temporary).and_then(|()| {
            self.place(dir, &temporary, dir, name, if_taken)?;
            Ok(dir.sync()?)
        });
        if placed.is_err() {
            let _ = dir.unlink(&temporary);
        }
        placed
    }

    fn lay_beside(&self, about: &About, content: &File, dir: &Dir, temporary: &[u8]) -> Result<(), QuarantineError> {
        if about.file_type == "symlink" {
            let mut text = Vec::new();
            content.take(about.size).read_to_end(&mut text).map_err(bytes("read"))?;
            return Ok(dir.symlink(&text, temporary)?);
        }
        let file = dir.create_new(temporary, 0o600)?;
        copy::copy(content, &file, about.size).map_err(bytes("copy"))?;
        attributes::chmod(&file, about.mode & 0o777)?;
        Ok(attributes::sync(&file)?)
    }

    fn place(&self, from: &Dir, name: &[u8], dir: &Dir, to: &[u8], if_taken: IfTaken) -> Result<(), QuarantineError> {
        match if_taken {
            IfTaken::Refuse => from.rename_new(name, dir, to)?,
            IfTaken::Replace => from.rename(name, dir, to)?,
        }
        Ok(())
    }
}
