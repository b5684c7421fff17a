//! Which messages of the process connector a socket gets, as a program the kernel runs for each.
//!
//! Promise: what [`super::process_events`] leaves out (threads, users, sessions, names) is dropped in the kernel; beside the
//! kernel's answer, an exec is always let through, and of forks and exits one in as many as is asked for, by the process's
//! number: numbers are given out in turn.
//! Limit: bytes that are no message of the connector are dropped or let through by what stands in their place.
//! Source: the kernel's Documentation/networking/filter.rst: loads are big-endian, and beyond the end of the message they end
//! the program with 0, which drops it; include/uapi/linux/cn_proc.h.

use libc::sock_filter;

/// Where it stands, after `struct nlmsghdr` and `struct cn_msg`: what happened, and of whom, after processor and time.
const KIND: u32 = 36;
const FIRST: u32 = KIND + 16;

const ANSWER: u32 = 0;
const FORK: u32 = 1;
const EXEC: u32 = 2;
const EXIT: u32 = 0x8000_0000;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const KEEP: u32 = libc::BPF_MISC | libc::BPF_TAX;
const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IS_KEPT: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_X;
const GO: u32 = libc::BPF_JMP | libc::BPF_JA;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

fn step(code: u32, k: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter { code: u16::try_from(code).expect("codes have 16 bits"), jt: then, jf: otherwise, k }
}

/// The program. `one_in` is a power of two.
pub(super) fn one_in(one_in: u32) -> [sock_filter; 17] {
    debug_assert!(one_in.is_power_of_two());
    // What is written there in the machine's order is loaded in the network's.
    let is = |value: u32, then, otherwise| step(IS, value.to_be(), then, otherwise);
    let field = |number: u32| step(LOAD, FIRST + 4 * number, 0, 0);
    [
        step(LOAD, KIND, 0, 0),
        is(ANSWER, 13, 0),
        is(EXEC, 12, 0),
        is(FORK, 1, 0),
        is(EXIT, 4, 11),
        // A fork: of the thread's and the process's number of the new one...
        field(2),
        step(KEEP, 0, 0, 0),
        field(3),
        step(GO, 3, 0, 0),
        // ...an exit: of the one that ended...
        field(0),
        step(KEEP, 0, 0, 0),
        field(1),
        // ...both are one, or it was a thread.
        step(IS_KEPT, 0, 0, 3),
        step(AND, (one_in - 1).to_be(), 0, 0),
        is(0, 0, 1),
        step(RETURN, u32::MAX, 0, 0),
        step(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::process_events::{ProcessEvent, process_events};
    use proptest::prelude::*;

    /// What the kernel would make of the message.
    fn lets(program: &[sock_filter], message: &[u8]) -> bool {
        let (mut at, mut accumulator, mut kept) = (0, 0_u32, 0_u32);
        loop {
            let step = &program[at];
            at += 1;
            let jump = |met: bool| usize::from(if met { step.jt } else { step.jf });
            match u32::from(step.code) {
                LOAD => {
                    let Some(bytes) = message.get(step.k as usize..step.k as usize + 4) else { return false };
                    accumulator = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
                }
                AND => accumulator &= step.k,
                KEEP => kept = accumulator,
                IS => at += jump(accumulator == step.k),
                IS_KEPT => at += jump(accumulator == kept),
                GO => at += step.k as usize,
                RETURN => return step.k > 0,
                code => panic!("an instruction {code:#x} that nobody expected"),
            }
        }
    }

    fn message(kind: u32, fields: &[u32]) -> Vec<u8> {
        let mut words = [0; 13];
        words[0] = 52 + 4 * fields.len() as u32;
        (words[4], words[5], words[9]) = (1, 1, kind);
        words.iter().chain(fields).flat_map(|word: &u32| word.to_ne_bytes()).collect()
    }

    fn kinds() -> impl Strategy<Value = u32> {
        prop_oneof![
            Just(0),
            Just(1),
            Just(2),
            Just(4),
            Just(0x40),
            Just(0x200),
            Just(0x4000_0000),
            Just(EXIT),
            any::<u32>()
        ]
    }

    #[test]
    fn threads_are_left_out_and_of_processes_one_in_so_many_is_told_beside_every_exec() {
        let (all, some) = (one_in(1), one_in(64));
        for (kind, fields, by_all, by_some) in [
            (ANSWER, [0, 0, 0, 0], true, true),
            (EXEC, [65, 65, 0, 0], true, true),
            (FORK, [9, 8, 65, 65], true, false),
            (FORK, [9, 8, 128, 128], true, true),
            (FORK, [9, 8, 129, 128], false, false),
            (EXIT, [65, 65, 0, 17], true, false),
            (EXIT, [192, 192, 0, 17], true, true),
            (EXIT, [193, 192, 0, 17], false, false),
            (0x200, [64, 64, 0, 0], false, false),
        ] {
            let message = message(kind, &fields);
            assert_eq!((lets(&all, &message), lets(&some, &message)), (by_all, by_some), "{kind:#x} {fields:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_let_through_and_nothing_else(
            kind in kinds(), fields in prop::collection::vec(0_u32..200, 0..7)
        ) {
            let message = message(kind, &fields);
            let read = process_events(&message).next();
            // A message that is cut may pass; the parser calls it garbled.
            let is_whole = !matches!(read, Some(Err(_)));
            prop_assert!(!is_whole || lets(&one_in(1), &message) == read.is_some());
            prop_assert!(!lets(&one_in(64), &message) || lets(&one_in(1), &message));
            let number = match read {
                Some(Ok(ProcessEvent::Fork { child, .. })) => Some(child),
                Some(Ok(ProcessEvent::Exit(pid))) => Some(pid),
                _ => None,
            };
            if let Some(number) = number {
                prop_assert_eq!(lets(&one_in(64), &message), number % 64 == 0);
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            lets(&one_in(64), &bytes);
        }
    }
}
