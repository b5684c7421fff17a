//! What the kernel writes into a read of a fanotify or inotify descriptor, as values.
//!
//! Promise: any bytes at all are taken; a record that does not fit ends the iteration with [`Garbled`], once. Nothing
//! panics, loops or reads past the buffer. Unknown kinds of information are skipped by their length.
//! Limit: a parser only; what a record means is the backends' knowledge.
//! Source: fanotify(7) "Reading fanotify events", inotify(7), include/uapi/linux/fanotify.h.

/// The bytes are not what the kernel's headers describe: what else the buffer held is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the kernel's event buffer is garbled")]
pub struct Garbled;

const METADATA: usize = 24;
const METADATA_VERSION: u8 = 3;
const INFO_HEADER: usize = 4;
const FSID: usize = 8;
/// The type of a handle the file system could not make (`FILEID_INVALID`).
const NO_HANDLE: i32 = 0xff;

/// The fixed fields at the head of a record, in the order in which they lie there.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_ne_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// A length, as the kernel gives it.
    fn length(&mut self) -> Option<usize> {
        self.u32().and_then(|length| usize::try_from(length).ok())
    }

    fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// What is left of a buffer of records.
#[derive(Debug)]
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    /// The next record as `read` makes it of the bytes left, with how many it took. One that does not fit ends the buffer.
    fn next<T>(&mut self, read: impl FnOnce(&'b [u8]) -> Option<(T, usize)>) -> Option<Result<T, Garbled>> {
        if self.0.is_empty() {
            return None;
        }
        let taken = read(self.0).and_then(|(record, length)| Some((record, self.0.get(length..)?)));
        self.0 = taken.as_ref().map_or(&[], |(_, rest)| rest);
        Some(taken.map(|(record, _)| record).ok_or(Garbled))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// One event of a fanotify group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fanotify<'b> {
    /// What happened, several things merged.
    pub mask: u64,
    /// The process that did it; 0 if we may not know.
    pub pid: i32,
    /// A descriptor of the object, or negative.
    pub fd: i32,
    info: &'b [u8],
}

impl<'b> Fanotify<'b> {
    /// The objects it names.
    pub fn objects(&self) -> Objects<'b> {
        Objects { rest: Rest(self.info) }
    }

    /// A descriptor of the process that did it (`FAN_REPORT_PIDFD`), or negative; `None` if none was told.
    pub fn process(&self) -> Option<i32> {
        let mut rest = Rest(self.info);
        while let Some(record) = rest.next(process) {
            match record {
                Ok(None) => {}
                Ok(found) => return found,
                Err(Garbled) => return None,
            }
        }
        None
    }
}

/// The descriptor of a record about a process; `None` in it for a record of another kind.
fn process(bytes: &[u8]) -> Option<(Option<i32>, usize)> {
    const PROCESS: u8 = 4;
    let mut fields = Fields(bytes);
    let kind = fields.u8()?;
    let _pad = fields.u8()?;
    let length = usize::from(fields.u16()?);
    let mut body = Fields(bytes.get(INFO_HEADER..length)?);
    Some((if kind == PROCESS { Some(body.i32()?) } else { None }, length))
}

/// An answer to an event that waits for one, as the kernel reads it (`struct fanotify_response`): by the number of the
/// event's descriptor.
pub fn answer(fd: i32, allow: bool) -> [u8; 8] {
    const ALLOW: u32 = 1;
    const DENY: u32 = 2;
    let response = if allow { ALLOW } else { DENY };
    let [[a, b, c, d], [e, f, g, h]] = [fd.to_ne_bytes(), response.to_ne_bytes()];
    [a, b, c, d, e, f, g, h]
}

/// The events in `buffer`, oldest first.
pub fn fanotify(buffer: &[u8]) -> FanotifyEvents<'_> {
    FanotifyEvents { rest: Rest(buffer) }
}

/// See [`fanotify`].
#[derive(Debug)]
pub struct FanotifyEvents<'b> {
    rest: Rest<'b>,
}

impl<'b> Iterator for FanotifyEvents<'b> {
    type Item = Result<Fanotify<'b>, Garbled>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.next(Fanotify::read)
    }
}

impl<'b> Fanotify<'b> {
    fn read(bytes: &'b [u8]) -> Option<(Self, usize)> {
        let mut fields = Fields(bytes);
        let length = fields.length()?;
        let version = fields.u8()?;
        let _reserved = fields.u8()?;
        let metadata = usize::from(fields.u16()?);
        if version != METADATA_VERSION || metadata < METADATA || length < metadata {
            return None;
        }
        let (mask, fd, pid) = (fields.u64()?, fields.i32()?, fields.i32()?);
        Some((Self { mask, pid, fd, info: bytes.get(metadata..length)? }, length))
    }
}

/// What an object of an event is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Object,
    /// The directory of the object, without a name.
    Directory,
    /// The directory, and the object's name in it; `.` is the directory itself.
    Entry,
    /// The entry a rename took away.
    OldEntry,
    /// The entry a rename made.
    NewEntry,
}

/// An object an event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'b> {
    /// What it is to the event.
    pub part: Part,
    /// File system id, handle length, handle type, handle: an identity to compare as a whole. `None` if the file system
    /// could not make a handle.
    pub key: Option<&'b [u8]>,
    /// The name that goes with it; empty if none does.
    pub name: &'b [u8],
}

/// See [`Fanotify::objects`].
#[derive(Debug)]
pub struct Objects<'b> {
    rest: Rest<'b>,
}

impl<'b> Iterator for Objects<'b> {
    type Item = Result<Object<'b>, Garbled>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.rest.next(Object::read)? {
                Ok(Some(object)) => return Some(Ok(object)),
                Ok(None) => {}
                Err(garbled) => return Some(Err(garbled)),
            }
        }
    }
}

impl<'b> Object<'b> {
    /// The object of a record; `None` in it if the record is of a kind that names no object.
    fn read(bytes: &'b [u8]) -> Option<(Option<Self>, usize)> {
        let mut fields = Fields(bytes);
        let kind = fields.u8()?;
        let _pad = fields.u8()?;
        let length = usize::from(fields.u16()?);
        // Also keeps an empty record from being read for ever.
        let mut fields = Fields(bytes.get(INFO_HEADER..length)?);
        let part = match kind {
            1 => Part::Object,
            2 => Part::Entry,
            3 => Part::Directory,
            10 => Part::OldEntry,
            12 => Part::NewEntry,
            _ => return Some((None, length)),
        };
        let body = fields.0;
        let _file_system = fields.bytes(FSID)?;
        let handle = fields.length()?;
        let handle_type = fields.i32()?;
        fields.bytes(handle)?;
        let key = &body[..body.len() - fields.0.len()];
        let name = match part {
            Part::Object | Part::Directory => &[],
            Part::Entry | Part::OldEntry | Part::NewEntry => until_nul(fields.0),
        };
        let key = (handle_type != NO_HANDLE && handle != 0).then_some(key);
        Some((Some(Self { part, key, name }), length))
    }
}

/// One event of an inotify instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inotify<'b> {
    /// The watch, as the kernel numbers it; -1 for an overflow.
    pub watch: i32,
    /// What happened.
    pub mask: u32,
    /// The name in the watched directory; empty if the watched object itself is meant.
    pub name: &'b [u8],
}

/// The events in `buffer`, oldest first.
pub fn inotify(buffer: &[u8]) -> InotifyEvents<'_> {
    InotifyEvents { rest: Rest(buffer) }
}

/// See [`inotify`].
#[derive(Debug)]
pub struct InotifyEvents<'b> {
    rest: Rest<'b>,
}

impl<'b> Iterator for InotifyEvents<'b> {
    type Item = Result<Inotify<'b>, Garbled>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.next(Inotify::read)
    }
}

impl<'b> Inotify<'b> {
    fn read(bytes: &'b [u8]) -> Option<(Self, usize)> {
        let mut fields = Fields(bytes);
        let (watch, mask, _cookie) = (fields.i32()?, fields.u32()?, fields.u32()?);
        let length = fields.length()?;
        let name = until_nul(fields.bytes(length)?);
        Some((Self { watch, mask, name }, bytes.len() - fields.0.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// An information record: kind, file system id 1..=8, a handle of type 1, and a name padded to four bytes.
    fn info(kind: u8, handle: &[u8], name: Option<&[u8]>) -> Vec<u8> {
        let mut body = vec![1, 2, 3, 4, 5, 6, 7, 8];
        body.extend_from_slice(&(handle.len() as u32).to_ne_bytes());
        body.extend_from_slice(&1i32.to_ne_bytes());
        body.extend_from_slice(handle);
        if let Some(name) = name {
            body.extend_from_slice(name);
            body.push(0);
        }
        body.resize(body.len().next_multiple_of(4), 0);
        let mut record = vec![kind, 0];
        record.extend_from_slice(&((body.len() + 4) as u16).to_ne_bytes());
        record.extend_from_slice(&body);
        record
    }

    fn event(mask: u64, infos: &[Vec<u8>]) -> Vec<u8> {
        let infos = infos.concat();
        let mut bytes = ((METADATA + infos.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[METADATA_VERSION, 0]);
        bytes.extend_from_slice(&(METADATA as u16).to_ne_bytes());
        bytes.extend_from_slice(&mask.to_ne_bytes());
        bytes.extend_from_slice(&(-1i32).to_ne_bytes());
        bytes.extend_from_slice(&7i32.to_ne_bytes());
        bytes.extend_from_slice(&infos);
        bytes
    }

    #[test]
    fn an_entry_has_its_directorys_key_and_its_name() {
        let bytes = event(0x100, &[info(2, b"handle!!", Some(b".env"))]);
        let events: Vec<_> = fanotify(&bytes).map(|event| event.expect("well formed")).collect();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].mask, events[0].pid, events[0].fd), (0x100, 7, -1));
        let objects: Vec<_> = events[0].objects().map(|object| object.expect("well formed")).collect();
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].part, Part::Entry);
        assert_eq!(objects[0].name, b".env");
        let key = objects[0].key.expect("a handle");
        assert_eq!(&key[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(&key[16..], b"handle!!");
    }

    #[test]
    fn unknown_information_is_skipped_and_both_sides_of_a_rename_are_told_apart() {
        let unknown = vec![99, 0, 8, 0, 1, 2, 3, 4];
        let bytes = event(1, &[unknown, info(10, b"12345678", Some(b"a")), info(12, b"12345678", Some(b"b"))]);
        let event = fanotify(&bytes).next().expect("an event").expect("well formed");
        let names: Vec<_> =
            event.objects().map(|object| object.expect("well formed")).map(|o| (o.part, o.name)).collect();
        assert_eq!(names, [(Part::OldEntry, &b"a"[..]), (Part::NewEntry, &b"b"[..])]);
    }

    #[test]
    fn an_object_without_a_handle_has_no_key() {
        let mut record = info(1, b"", None);
        record[16..20].copy_from_slice(&NO_HANDLE.to_ne_bytes());
        let bytes = event(1, &[record]);
        let event = fanotify(&bytes).next().expect("an event").expect("well formed");
        assert_eq!(event.objects().next().expect("an object").expect("well formed").key, None);
    }

    #[test]
    fn a_process_is_found_behind_other_information_and_a_cut_record_has_none() {
        let mut record = vec![4, 0, 8, 0];
        record.extend_from_slice(&17i32.to_ne_bytes());
        let bytes = event(1, &[info(1, b"12345678", None), record.clone()]);
        assert_eq!(fanotify(&bytes).next().expect("an event").expect("well formed").process(), Some(17));
        let bytes = event(1, &[info(1, b"12345678", None)]);
        assert_eq!(fanotify(&bytes).next().expect("an event").expect("well formed").process(), None);
        record[2] = 6;
        record.truncate(6);
        let bytes = event(1, &[record]);
        assert_eq!(fanotify(&bytes).next().expect("an event").expect("well formed").process(), None);
    }

    #[test]
    fn an_answer_is_laid_out_as_the_kernel_reads_it() {
        let expected = |response: u32| [17i32.to_ne_bytes(), response.to_ne_bytes()].concat();
        assert_eq!(answer(17, true).to_vec(), expected(1));
        assert_eq!(answer(17, false).to_vec(), expected(2));
    }

    #[test]
    fn a_cut_event_is_garbled_once_and_ends_the_buffer() {
        let whole = event(1, &[info(1, b"12345678", None)]);
        let mut bytes = whole.clone();
        bytes.extend_from_slice(&whole[..whole.len() - 1]);
        let seen: Vec<_> = fanotify(&bytes).map(|event| event.is_ok()).collect();
        assert_eq!(seen, [true, false]);
    }

    #[test]
    fn a_length_of_zero_does_not_loop() {
        let mut bytes = event(1, &[info(1, b"12345678", None)]);
        bytes[..4].copy_from_slice(&0u32.to_ne_bytes());
        assert_eq!(fanotify(&bytes).collect::<Vec<_>>(), [Err(Garbled)]);
        let mut bytes = event(1, &[info(1, b"12345678", None)]);
        bytes[METADATA + 2..METADATA + 4].copy_from_slice(&0u16.to_ne_bytes());
        let event = fanotify(&bytes).next().expect("an event").expect("well formed");
        assert_eq!(event.objects().collect::<Vec<_>>(), [Err(Garbled)]);
    }

    #[test]
    fn an_inotify_name_ends_at_its_padding() {
        let mut bytes = 3i32.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&0x100u32.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(&16u32.to_ne_bytes());
        bytes.extend_from_slice(b"\xff.env\0\0\0\0\0\0\0\0\0\0\0");
        let cut = &bytes[..bytes.len() - 1];
        let seen = inotify(&bytes).next().expect("an event").expect("well formed");
        assert_eq!(seen, Inotify { watch: 3, mask: 0x100, name: b"\xff.env" });
        assert_eq!(inotify(cut).collect::<Vec<_>>(), [Err(Garbled)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            for event in fanotify(&bytes).flatten() {
                prop_assert!(event.objects().count() <= bytes.len());
                event.process();
            }
            prop_assert!(inotify(&bytes).count() <= bytes.len() / 16 + 1);
        }

        #[test]
        fn any_damage_to_real_events_is_taken(at in 0usize..200, byte in any::<u8>(), cut in 0usize..200) {
            let mut bytes = [event(1, &[info(1, b"12345678", None)]), event(2, &[info(2, b"1234", Some(b"name"))])].concat();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(length - cut % length);
            for event in fanotify(&bytes).flatten() {
                for object in event.objects().flatten() {
                    prop_assert!(object.name.len() < bytes.len());
                }
            }
        }
    }
}
