//! Git's index: which paths are tracked, and the blob of one of them.
//!
//! Promise: any bytes end in an answer, without a panic and in time and memory linear in their number; what cannot be
//! read makes every path count as tracked, which protects more. Limit: split and sparse indexes are not resolved.
//! Source: gitformat-index(5), versions 2 to 4.

use std::cmp::Ordering;

use sha1::Digest as _;

/// Bytes an index may have.
pub const MAX_INDEX_BYTES: u64 = 256 << 20;
/// Bytes a tracked path may have; more than any system's longest path.
const MAX_PATH_BYTES: usize = 64 << 10;
/// Bytes all paths together may have. Prefix compression must not blow a small index up.
const MAX_PATHS_BYTES: usize = 512 << 20;

/// How the repository names objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectFormat {
    /// SHA-1.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
}

impl ObjectFormat {
    const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The name git gives the blob with this content.
    pub fn blob_id(self, content: &[u8]) -> Vec<u8> {
        let header = format!("blob {}\0", content.len());
        match self {
            Self::Sha1 => sha1::Sha1::new().chain_update(header).chain_update(content).finalize().to_vec(),
            Self::Sha256 => sha2::Sha256::new().chain_update(header).chain_update(content).finalize().to_vec(),
        }
    }
}

/// Why an index could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The bytes are no index of a version we know, or end too soon.
    #[error("git's index is damaged or of an unknown version")]
    Damaged,
    /// The paths do not stand in order.
    #[error("git's index is out of order")]
    Disorder,
    /// Entries lie in another file.
    #[error("git's index is split in two")]
    Split,
    /// Whole directories stand for their files.
    #[error("git's index is sparse")]
    Sparse,
    /// Paths longer than we take.
    #[error("git's index holds too many or too long paths")]
    TooLarge,
}

/// The tracked paths.
#[derive(Debug)]
pub enum Tracked {
    /// We could not find out: every path counts.
    All,
    /// These, in order.
    Paths(Paths),
}

/// Paths in order, in one piece of memory.
#[derive(Debug, Default)]
pub struct Paths {
    bytes: Vec<u8>,
    /// Where each path ends.
    ends: Vec<usize>,
}

impl Paths {
    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// Index of the first path that is not before what `order` describes.
    fn lower_bound(&self, order: impl Fn(&[u8]) -> Ordering) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if order(self.get(middle)) == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn push(&mut self, path: &[u8]) -> Result<(), IndexError> {
        if let Some(last) = self.ends.len().checked_sub(1) {
            match self.get(last).cmp(path) {
                Ordering::Less => {}
                // A conflict has up to three entries of one path.
                Ordering::Equal => return Ok(()),
                Ordering::Greater => return Err(IndexError::Disorder),
            }
        }
        self.bytes.extend_from_slice(path);
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

impl Tracked {
    /// No path is.
    pub fn none() -> Self {
        Self::Paths(Paths::default())
    }

    /// These paths, which must be in order and differ.
    #[cfg(test)]
    pub(crate) fn from_sorted<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut list = Paths::default();
        paths.into_iter().for_each(|path| list.push(path).expect("the paths are in order"));
        Self::Paths(list)
    }

    /// Whether the entry `name` of `dir` is tracked.
    pub fn contains(&self, dir: &[u8], name: &[u8]) -> bool {
        let Self::Paths(paths) = self else { return true };
        let wanted = || dir.iter().chain((!dir.is_empty()).then_some(&b'/')).chain(name);
        let index = paths.lower_bound(|path| path.iter().cmp(wanted()));
        index < paths.ends.len() && paths.get(index).iter().eq(wanted())
    }

    /// Whether a tracked path lies below `dir`.
    pub fn has_below(&self, dir: &[u8]) -> bool {
        let Self::Paths(paths) = self else { return true };
        let wanted = || dir.iter().chain((!dir.is_empty()).then_some(&b'/'));
        let index = paths.lower_bound(|path| path.iter().cmp(wanted()));
        let length = wanted().count();
        index < paths.ends.len() && paths.get(index).len() >= length && wanted().eq(&paths.get(index)[..length])
    }
}

/// What an index holds.
#[derive(Debug)]
pub struct Index {
    /// The tracked paths.
    pub paths: Paths,
    /// Name of the blob of the path that was asked for, if it is tracked.
    pub blob: Option<Vec<u8>>,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], IndexError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(IndexError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, IndexError> {
        self.take(4).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes were taken")))
    }

    fn u16(&mut self) -> Result<u16, IndexError> {
        self.take(2).map(|bytes| u16::from_be_bytes(bytes.try_into().expect("two bytes were taken")))
    }

    fn until_nul(&mut self) -> Result<&'a [u8], IndexError> {
        let end = self.0.iter().take(MAX_PATH_BYTES).position(|&byte| byte == 0).ok_or(IndexError::Damaged)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }

    /// Git's offset encoding: each further byte adds one before shifting.
    fn offset(&mut self) -> Result<usize, IndexError> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1).filter(|&value| value < 1 << 40).ok_or(IndexError::Damaged)?;
            value = value << 7 | usize::from(byte & 0x7f);
        }
        Ok(value)
    }
}

/// Reads an index; `wanted` is the path whose blob is asked for.
pub fn parse(bytes: &[u8], format: ObjectFormat, wanted: &[u8]) -> Result<Index, IndexError> {
    let mut reader = Reader(bytes);
    if reader.take(4)? != b"DIRC" {
        return Err(IndexError::Damaged);
    }
    let version = reader.u32()?;
    if !(2..=4).contains(&version) {
        return Err(IndexError::Damaged);
    }
    let count = reader.u32()?;
    let mut index = Index { paths: Paths::default(), blob: None };
    let mut path = Vec::new();
    for _ in 0..count {
        let start = reader.0.len();
        reader.take(24)?;
        let mode = reader.u32()?;
        reader.take(12)?;
        let blob = reader.take(format.length())?;
        let flags = reader.u16()?;
        if version >= 3 && flags & 0x4000 != 0 {
            reader.u16()?;
        }
        if version == 4 {
            let strip = reader.offset()?;
            let kept = path.len().checked_sub(strip).ok_or(IndexError::Damaged)?;
            path.truncate(kept);
            path.extend_from_slice(reader.until_nul()?);
        } else {
            path.clear();
            path.extend_from_slice(reader.until_nul()?);
            // Entries are padded to eight bytes, one NUL at least, which is taken already.
            let length = start - reader.0.len();
            reader.take(length.next_multiple_of(8) - length)?;
        }
        if path.is_empty() {
            return Err(IndexError::Damaged);
        }
        if path.len() > MAX_PATH_BYTES || index.paths.bytes.len() + path.len() > MAX_PATHS_BYTES {
            return Err(IndexError::TooLarge);
        }
        if mode & 0o170_000 == 0o040_000 {
            return Err(IndexError::Sparse);
        }
        index.paths.push(&path)?;
        if path == wanted {
            index.blob = Some(blob.to_vec());
        }
    }
    // Extensions, then a checksum over all, which guards against bad disks, not against people: it is not looked at.
    while reader.0.len() > format.length() {
        let name = reader.take(4)?;
        let length = reader.u32()?;
        match name {
            b"link" => return Err(IndexError::Split),
            b"sdir" => return Err(IndexError::Sparse),
            _ => reader.take(usize::try_from(length).map_err(|_| IndexError::Damaged)?)?,
        };
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MODE: u32 = 0o100_644;

    fn index(version: u32, entries: &[(&str, u32)], extension: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).expect("few").to_be_bytes());
        let mut last: &[u8] = b"";
        for (path, mode) in entries {
            let start = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; 12]);
            bytes.extend([7; 20]);
            bytes.extend([0, 0]);
            if version == 4 {
                let same = last.iter().zip(path.as_bytes()).take_while(|(a, b)| a == b).count();
                bytes.push(u8::try_from(last.len() - same).expect("short"));
                bytes.extend(&path.as_bytes()[same..]);
                bytes.push(0);
                last = path.as_bytes();
            } else {
                bytes.extend(path.as_bytes());
                bytes.push(0);
                bytes.resize(start + (bytes.len() - start).next_multiple_of(8), 0);
            }
        }
        bytes.extend(extension);
        bytes.extend([0; 20]);
        bytes
    }

    #[test]
    fn paths_of_every_version_are_read() {
        let entries = [(".cage.yaml", MODE), ("a-b", MODE), ("a/b", MODE), ("a/b/c.txt", MODE), ("z", MODE)];
        for version in 2..=4 {
            let index = parse(&index(version, &entries, b"TREE\0\0\0\x01x"), ObjectFormat::Sha1, b".cage.yaml")
                .unwrap_or_else(|error| panic!("version {version}: {error}"));
            assert_eq!(index.blob, Some(vec![7; 20]));
            let tracked = Tracked::Paths(index.paths);
            assert!(tracked.contains(b"a/b", b"c.txt") && tracked.contains(b"", b"z") && tracked.contains(b"a", b"b"));
            assert!(
                !tracked.contains(b"a", b"c") && !tracked.contains(b"", b"a") && !tracked.contains(b"a/b", b"c.tx")
            );
            assert!(tracked.has_below(b"a") && tracked.has_below(b"a/b") && tracked.has_below(b""));
            assert!(!tracked.has_below(b"z") && !tracked.has_below(b"a/b/c"));
        }
    }

    #[test]
    fn what_we_do_not_understand_is_an_error() {
        let plain = index(2, &[("a", MODE)], b"");
        let error = |bytes: &[u8]| parse(bytes, ObjectFormat::Sha1, b"").expect_err("an error");
        assert_eq!(error(b"DIRX"), IndexError::Damaged);
        assert_eq!(error(&plain[..40]), IndexError::Damaged);
        assert_eq!(error(&index(5, &[], b"")), IndexError::Damaged);
        assert_eq!(error(&index(2, &[("b", MODE), ("a", MODE)], b"")), IndexError::Disorder);
        assert_eq!(error(&index(2, &[("a/", 0o040_000)], b"")), IndexError::Sparse);
        assert_eq!(error(&index(2, &[("a", MODE)], b"link\0\0\0\0")), IndexError::Split);
        assert_eq!(error(&index(2, &[("a", MODE)], b"sdir\0\0\0\0")), IndexError::Sparse);
        let mut huge = index(2, &[], b"");
        huge[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(error(&huge), IndexError::Damaged);
    }

    #[test]
    fn blobs_have_the_names_git_gives_them() {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(ObjectFormat::Sha1.blob_id(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            hex(ObjectFormat::Sha256.blob_id(b"")),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut at in 0..200usize, byte in any::<u8>(), version in 2..=4u32, bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut index = index(version, &[("a", MODE), ("a/b", MODE), ("ab", MODE)], b"");
            at %= index.len();
            index[at] = byte;
            let _ = parse(&index, ObjectFormat::Sha1, b"a");
            index.truncate(at);
            index.extend(&bytes);
            let _ = parse(&index, ObjectFormat::Sha256, b"a");
        }
    }
}
