//! What the kernel tells of processes through its connector, as values.
//!
//! Promise: any bytes at all are taken; a message that does not fit ends the iteration with [`Garbled`], once. Nothing
//! panics or loops. What happens to threads, and kinds this version does not know, is left out.
//! Limit: a parser only; that the bytes come from the kernel is for the reader of the socket to see.
//! Source: include/uapi/linux/{netlink,connector,cn_proc}.h.

use super::records::Garbled;

/// Something that happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// The kernel's answer to whoever asked for messages; zero if it sends them.
    Answer(u32),
    /// A process was made.
    Fork {
        /// By which.
        parent: u32,
        /// Its number.
        child: u32,
    },
    /// It runs another program now.
    Exec(u32),
    /// Its first thread has ended.
    Exit(u32),
}

const HEADER: usize = 16;
const CONNECTOR: usize = 20;
/// Kind, processor and time.
const COMMON: usize = 16;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().expect("four bytes were taken")))
}

/// The messages in what one read of the socket gave, oldest first.
pub fn process_events(buffer: &[u8]) -> ProcessEvents<'_> {
    ProcessEvents { rest: buffer }
}

/// See [`process_events`].
#[derive(Debug)]
pub struct ProcessEvents<'b> {
    rest: &'b [u8],
}

impl Iterator for ProcessEvents<'_> {
    type Item = Result<ProcessEvent, Garbled>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let length = u32_at(self.rest, 0).map(|length| length as usize).filter(|&length| length >= HEADER);
            let Some(message) = length.and_then(|length| self.rest.get(..length)) else {
                self.rest = &[];
                return Some(Err(Garbled));
            };
            // Messages begin at multiples of four; the last one need not be padded.
            self.rest = self.rest.get(message.len().next_multiple_of(4)..).unwrap_or_default();
            match read(message) {
                Some(Some(event)) => return Some(Ok(event)),
                Some(None) => {}
                None => {
                    self.rest = &[];
                    return Some(Err(Garbled));
                }
            }
        }
        None
    }
}

/// A message; `None` in it if it says nothing we ask for.
fn read(message: &[u8]) -> Option<Option<ProcessEvent>> {
    let body = message.get(HEADER..)?;
    // Of another part of the connector, or none of its messages at all.
    const PROCESSES: u32 = 1;
    if u32_at(body, 0)? != PROCESSES || u32_at(body, 4)? != PROCESSES {
        return Some(None);
    }
    let event = body.get(CONNECTOR..)?;
    let field = |number: usize| u32_at(event, COMMON + 4 * number);
    Some(match u32_at(event, 0)? {
        0 => Some(ProcessEvent::Answer(field(0)?)),
        // A thread has another number than its process.
        1 => (field(2)? == field(3)?).then_some(ProcessEvent::Fork { parent: field(1)?, child: field(3)? }),
        2 => Some(ProcessEvent::Exec(field(1)?)),
        0x8000_0000 => (field(0)? == field(1)?).then_some(ProcessEvent::Exit(field(1)?)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(what: u32, fields: &[u32]) -> Vec<u8> {
        let mut event = what.to_ne_bytes().to_vec();
        event.extend([0; 12]);
        fields.iter().for_each(|field| event.extend(field.to_ne_bytes()));
        let mut bytes = ((HEADER + CONNECTOR + event.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend([0; HEADER - 4]);
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend([0; CONNECTOR - 8]);
        bytes.extend(event);
        bytes
    }

    #[test]
    fn forks_execs_and_exits_are_told_and_threads_are_not() {
        let bytes = [
            message(0, &[0]),
            message(1, &[9, 8, 20, 20]),
            message(1, &[9, 8, 21, 20]),
            message(2, &[20, 20]),
            message(0x200, &[20, 20, 0, 0, 0, 0]),
            message(0x8000_0000, &[21, 20, 0, 17]),
            message(0x8000_0000, &[20, 20, 0, 17]),
        ]
        .concat();
        let told: Vec<_> = process_events(&bytes).map(|event| event.expect("well formed")).collect();
        let expected = [
            ProcessEvent::Answer(0),
            ProcessEvent::Fork { parent: 8, child: 20 },
            ProcessEvent::Exec(20),
            ProcessEvent::Exit(20),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_cut_message_is_garbled_once_and_a_length_of_zero_does_not_loop() {
        let whole = message(2, &[5, 5]);
        let cut = [whole.clone(), whole[..whole.len() - 1].to_vec()].concat();
        assert_eq!(process_events(&cut).collect::<Vec<_>>(), [Ok(ProcessEvent::Exec(5)), Err(Garbled)]);
        assert_eq!(process_events(&[0; 40]).collect::<Vec<_>>(), [Err(Garbled)]);
        let short = message(1, &[1, 1]);
        assert_eq!(process_events(&short).collect::<Vec<_>>(), [Err(Garbled)], "a fork has four numbers");
    }

    proptest! {
        #[test]
        fn any_bytes_and_any_damage_are_taken(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200, byte in any::<u8>()
        ) {
            prop_assert!(process_events(&bytes).count() <= bytes.len() / HEADER + 1);
            let mut damaged = [message(1, &[1, 1, 2, 2]), message(2, &[2, 2])].concat();
            let length = damaged.len();
            damaged[at % length] = byte;
            prop_assert!(process_events(&damaged).count() <= 3);
        }
    }
}
