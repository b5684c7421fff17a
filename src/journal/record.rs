//! A snapshot as the journal holds it: what it is and which content it had, never the content.
//!
//! Promise: no byte of a file, of a link's text or of an attribute's value is in a [`Record`]; they lie in the object
//! store under the digests given here. [`Record::snapshot`] takes an object only if it has its digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::baseline::{Content, Snapshot};
use crate::digest::Digest;
use crate::store::{parse_attributes, serialize_attributes};

/// What is at a path, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordType {
    /// Nothing.
    Absent,
    /// A regular file; `sha256` is the digest of its bytes.
    Regular,
    /// A regular file whose content was not read.
    Unread,
    /// A symbolic link; `sha256` is the digest of its text.
    Symlink,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// One path's state as the journal holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// Its type.
    #[serde(rename = "type")]
    pub file_type: RecordType,
    /// Permission bits.
    #[serde(serialize_with = "octal", deserialize_with = "from_octal")]
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes of the content, or of the link's text; zero for other types.
    pub size: u64,
    /// Digest of the content, or of the link's text; `None` for other types.
    pub sha256: Option<Digest>,
    /// Digest of what [`serialize_attributes`] makes of the extended attributes; `None` if there are none.
    pub xattrs: Option<Digest>,
    /// Whether the file system refuses every change.
    pub immutable: bool,
    /// Whether only appending is allowed.
    pub append_only: bool,
}

/// Why the objects do not make the recorded snapshot.
#[derive(Debug, thiserror::Error)]
pub enum RecordError<E> {
    /// The object could not be read.
    #[error("the stored object {} cannot be read", .0.short())]
    Object(Digest, #[source] E),
    /// The object is not the one that was put there.
    #[error("the stored object {} is damaged", .0.short())]
    Damaged(Digest),
    /// The entry says that there is content, and not which.
    #[error("the entry names no content")]
    Incomplete,
}

impl Record {
    /// The record of a snapshot. Its objects are the content, the link's text and [`serialize_attributes`].
    pub fn of(snapshot: &Snapshot) -> Self {
        let (file_type, size) = match &snapshot.content {
            Content::Absent => (RecordType::Absent, 0),
            Content::Regular { size, .. } => (RecordType::Regular, *size),
            Content::Unread { size } => (RecordType::Unread, *size),
            Content::Symlink { text } => (RecordType::Symlink, text.len() as u64),
            Content::Directory => (RecordType::Directory, 0),
            Content::Fifo => (RecordType::Fifo, 0),
            Content::Socket => (RecordType::Socket, 0),
            Content::Device => (RecordType::Device, 0),
        };
        Self {
            file_type,
            mode: snapshot.mode,
            uid: snapshot.uid,
            gid: snapshot.gid,
            size,
            sha256: snapshot.digest(),
            xattrs: (!snapshot.xattrs.is_empty()).then(|| Digest::of(&serialize_attributes(&snapshot.xattrs))),
            immutable: snapshot.immutable,
            append_only: snapshot.append_only,
        }
    }

    /// The snapshot this is the record of. `object` reads a small object of the store by its digest: a link's text or
    /// attributes; a file's bytes are not read.
    pub fn snapshot<E>(
        &self,
        mut object: impl FnMut(Digest) -> Result<Vec<u8>, E>,
    ) -> Result<Snapshot, RecordError<E>> {
        let mut read = |digest: Digest| {
            let bytes = object(digest).map_err(|error| RecordError::Object(digest, error))?;
            if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(RecordError::Damaged(digest)) }
        };
        let content = match self.file_type {
            RecordType::Absent => Content::Absent,
            RecordType::Regular => {
                Content::Regular { digest: self.sha256.ok_or(RecordError::Incomplete)?, size: self.size }
            }
            RecordType::Unread => Content::Unread { size: self.size },
            RecordType::Symlink => Content::Symlink { text: read(self.sha256.ok_or(RecordError::Incomplete)?)? },
            RecordType::Directory => Content::Directory,
            RecordType::Fifo => Content::Fifo,
            RecordType::Socket => Content::Socket,
            RecordType::Device => Content::Device,
        };
        let xattrs = match self.xattrs {
            None => BTreeMap::new(),
            Some(digest) => parse_attributes(&read(digest)?).ok_or(RecordError::Damaged(digest))?,
        };
        Ok(Snapshot {
            content,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            xattrs,
            immutable: self.immutable,
            append_only: self.append_only,
            stat: None,
        })
    }
}

pub(super) fn octal<S: Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:04o}"))
}

pub(super) fn from_octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let digits = String::deserialize(deserializer)?;
    match u32::from_str_radix(&digits, 8) {
        Ok(mode) if mode <= 0o7777 && !digits.starts_with('+') => Ok(mode),
        _ => Err(serde::de::Error::custom(format_args!("{digits:?} are no permission bits"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attributes() -> impl Strategy<Value = BTreeMap<Vec<u8>, Vec<u8>>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
        proptest::collection::btree_map(bytes(), bytes(), 0..4)
    }

    fn snapshots() -> impl Strategy<Value = Snapshot> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..20);
        let content = prop_oneof![
            Just(Content::Absent),
            (bytes.clone(), any::<u64>()).prop_map(|(b, size)| Content::Regular { digest: Digest::of(&b), size }),
            bytes.prop_map(|text| Content::Symlink { text }),
            Just(Content::Directory),
            Just(Content::Fifo),
            Just(Content::Socket),
            Just(Content::Device),
        ];
        (content, 0..0o10000u32, any::<(u32, u32, bool, bool)>(), attributes()).prop_map(
            |(content, mode, (uid, gid, immutable, append_only), xattrs)| Snapshot {
                content,
                mode,
                uid,
                gid,
                xattrs,
                immutable,
                append_only,
                stat: None,
            },
        )
    }

    /// The objects a snapshot needs besides a file's bytes.
    fn store(snapshot: &Snapshot) -> impl FnMut(Digest) -> Result<Vec<u8>, &'static str> {
        let mut objects = vec![serialize_attributes(&snapshot.xattrs)];
        if let Content::Symlink { text } = &snapshot.content {
            objects.push(text.clone());
        }
        move |digest| objects.iter().find(|object| Digest::of(object) == digest).cloned().ok_or("absent")
    }

    #[test]
    fn a_record_reads_as_the_docs_show_it() {
        let content = Content::Regular { digest: Digest::of(b""), size: 0 };
        let snapshot = Snapshot { content, mode: 0o640, uid: 1000, gid: 100, ..Snapshot::absent() };
        assert_eq!(
            serde_json::to_string(&Record::of(&snapshot)).expect("serializes"),
            r#"{"type":"regular","mode":"0640","uid":1000,"gid":100,"size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","xattrs":null,"immutable":false,"append_only":false}"#
        );
    }

    #[test]
    fn an_object_that_is_not_the_recorded_one_is_not_taken() {
        let snapshot = Snapshot { content: Content::Symlink { text: b"a".to_vec() }, ..Snapshot::absent() };
        let made = Record::of(&snapshot).snapshot(|_| Ok::<_, ()>(b"/etc/shadow".to_vec()));
        assert!(matches!(made, Err(RecordError::Damaged(_))), "{made:?}");
    }

    #[test]
    fn bits_that_are_none_are_refused() {
        for mode in ["0644x", "", "+644", "-1", "77777"] {
            let json = serde_json::to_string(&Record::of(&Snapshot::absent())).expect("serializes");
            let json = json.replace("\"0000\"", &format!("{mode:?}"));
            assert!(serde_json::from_str::<Record>(&json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn every_snapshot_comes_back(snapshot in snapshots()) {
            let json = serde_json::to_string(&Record::of(&snapshot)).expect("serializes");
            let record: Record = serde_json::from_str(&json).expect("parses");
            prop_assert_eq!(record.snapshot(store(&snapshot)).expect("has all objects"), snapshot);
        }

        #[test]
        fn attributes_come_back_and_other_bytes_never_panic(
            xattrs in attributes(), bytes in proptest::collection::vec(any::<u8>(), 0..40)
        ) {
            prop_assert_eq!(parse_attributes(&serialize_attributes(&xattrs)), Some(xattrs));
            if let Some(parsed) = parse_attributes(&bytes) {
                prop_assert_eq!(serialize_attributes(&parsed), bytes);
            }
        }
    }
}
