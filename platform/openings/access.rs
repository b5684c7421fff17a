//! What a held open is for: from the kernel's word on writers, and from the registers of whoever is held.
//!
//! Promise: [`Access::Read`] is said only if no writer has the file open and nothing tells that it is cut.
//! Limit: the registers are there for `O_TRUNC` without writing, which no lease shows. Where they tell nothing (other threads
//! run, flags in memory, Yama, another user's process), the lease alone decides, and such a cut passes for a read, as
//! truncate(2) passes unheld. A read counts as writing while somebody else has the file open for that, or waits to.
//! Source: proc_pid_syscall(5), proc_pid_stat(5); arch/x86/entry/syscalls and include/uapi/asm-generic/unistd.h for the
//! numbers; fs/notify/fanotify: a held thread is asleep in `TASK_KILLABLE`, which /proc shows as `D`.

use crate::opening::Access;

const ACCESS_MODE: u64 = 0o3;
const TRUNCATE: u64 = 0o1000;

/// What a system call of a thread says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It opens for this.
    Access(Access),
    /// It opens, if it does, for what cannot be seen from its registers.
    Nothing,
    /// The thread is in no system call, or on its way into one.
    Running,
}

/// How a call that opens says what for.
enum Means {
    /// By the flags in the argument of this number.
    Flags(usize),
    Writing,
    Reading,
}

fn means(number: i64, machine: &str) -> Option<Means> {
    use Means::{Flags, Reading, Writing};
    Some(match (machine, number) {
        // open, creat, openat, open_by_handle_at; execve, execveat.
        ("x86_64", 2) => Flags(1),
        ("x86_64", 85) => Writing,
        ("x86_64", 257 | 304) | ("aarch64", 56 | 265) => Flags(2),
        ("x86_64", 59 | 322) | ("aarch64", 221 | 281) => Reading,
        // openat2, io_uring_enter and all else: their flags are in memory, which can be changed while we look.
        _ => return None,
    })
}

/// Reads a line of `/proc/PID/task/TID/syscall` on this machine (as `std::env::consts::ARCH` names it).
pub fn told(line: &[u8], machine: &str) -> Told {
    let Ok(line) = std::str::from_utf8(line) else { return Told::Nothing };
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return Told::Nothing };
    if first == "running" {
        return Told::Running;
    }
    let Some(means) = first.parse().ok().and_then(|number| means(number, machine)) else { return Told::Nothing };
    let index = match means {
        Means::Writing => return Told::Access(Access::Write),
        Means::Reading => return Told::Access(Access::Read),
        Means::Flags(index) => index,
    };
    let argument = words.nth(index).and_then(|word| word.strip_prefix("0x"));
    match argument.and_then(|word| u64::from_str_radix(word, 16).ok()) {
        Some(flags) if flags & (ACCESS_MODE | TRUNCATE) == 0 => Told::Access(Access::Read),
        Some(_) => Told::Access(Access::Write),
        None => Told::Nothing,
    }
}

/// How a thread is, as far as that tells whether it can be the one that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posture {
    /// Runs, or waits for a processor: perhaps on its way to sleep in the open that we know of.
    Moves,
    /// Sleeps as a held thread does.
    Held,
    /// The same, in the kernel's work for a ring: its registers are another thread's, of another time.
    Worker,
    /// Sleeps in another way, is stopped or has ended: it is not the one.
    Elsewhere,
}

/// Reads a line of `/proc/PID/task/TID/stat`.
pub fn posture(line: &[u8]) -> Option<Posture> {
    /// `PF_IO_WORKER` and `PF_USER_WORKER` (include/linux/sched.h).
    const WORKER: u64 = 0x10 | 0x4000;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
    // The state is field 3 of the line, the flags are field 9.
    let state = fields.next()?;
    let flags: u64 = fields.nth(9 - 3 - 1)?.parse().ok()?;
    Some(match state {
        "R" => Posture::Moves,
        "D" if flags & WORKER != 0 => Posture::Worker,
        "D" => Posture::Held,
        _ => Posture::Elsewhere,
    })
}

/// What all threads of the opener say together. `None`: nothing yet; some of them move, and it is to be looked again.
pub fn together(threads: impl IntoIterator<Item = (Posture, Told)>) -> Option<Told> {
    let (mut held, mut moves) = (false, false);
    for (posture, told) in threads {
        match (posture, told) {
            (Posture::Elsewhere, _) => {}
            (Posture::Moves, _) | (Posture::Held, Told::Running) => moves = true,
            (Posture::Held, Told::Access(Access::Read)) => held = true,
            (Posture::Held, told) => return Some(told),
            (Posture::Worker, _) => return Some(Told::Nothing),
        }
    }
    (held && !moves).then_some(Told::Access(Access::Read))
}

/// What the lease says of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Nobody has it open for writing, nor is the held open for that.
    NoWriter,
    /// The held open is for writing, or somebody else has it open so.
    Writer,
    /// It could not be asked.
    Unknown,
}

/// What the open is for. `registers` is asked only where the lease is not enough; `None` from it: the system keeps them to
/// itself.
pub fn access(lease: Lease, registers: impl FnOnce() -> Option<Told>) -> Access {
    match lease {
        // It is not for writing: that is the kernel's word. What is left is cutting by the open, which counts where it is told,
        // and where not passes as truncate(2) does; else every reader with several threads would have to wait.
        Lease::NoWriter => match registers() {
            Some(Told::Access(access)) => access,
            _ => Access::Read,
        },
        // It may be another one; but an open by io_uring runs at the end of whatever call its thread is in, whose registers
        // prove nothing against the kernel's word.
        Lease::Writer => Access::Write,
        Lease::Unknown => match registers() {
            Some(Told::Access(access)) => access,
            _ => Access::Write,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const READ: Told = Told::Access(Access::Read);
    const WRITE: Told = Told::Access(Access::Write);

    fn x86(line: &str) -> Told {
        told(line.as_bytes(), "x86_64")
    }

    #[test]
    fn the_flags_of_an_open_are_where_the_call_has_them() {
        assert_eq!(x86("257 0xffffff9c 0x7ffd 0x80000 0x0 0x0 0x0 0x7ffd 0x7f"), READ);
        assert_eq!(x86("257 0xffffff9c 0x7ffd 0x80001 0x0 0x0 0x0 0x7ffd 0x7f"), WRITE);
        assert_eq!(x86("257 0xffffff9c 0x7ffd 0x80002 0x0 0x0 0x0 0x7ffd 0x7f"), WRITE);
        assert_eq!(x86("257 0xffffff9c 0x7ffd 0x200 0x0 0x0 0x0 0x7ffd 0x7f"), WRITE, "cut, and not written");
        assert_eq!(x86("2 0x7ffd 0x0 0x1b6 0x0 0x0 0x0 0x7ffd 0x7f"), READ);
        assert_eq!(x86("2 0x7ffd 0x241 0x1b6 0x0 0x0 0x0 0x7ffd 0x7f"), WRITE);
        assert_eq!(x86("85 0x7ffd 0x1b6 0x0 0x0 0x0 0x0 0x7ffd 0x7f"), WRITE);
        assert_eq!(x86("304 0x3 0x7ffd 0x0 0x0 0x0 0x0 0x7ffd 0x7f"), READ);
        assert_eq!(x86("59 0x7ffd 0x1 0x1 0x1 0x0 0x0 0x7ffd 0x7f"), READ);
        assert_eq!(told(b"56 0xffffff9c 0x7ffd 0x0 0x0 0x0 0x0 0x7ffd 0x7f", "aarch64"), READ);
        assert_eq!(told(b"56 0xffffff9c 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd 0x7f", "aarch64"), WRITE);
    }

    #[test]
    fn what_lies_in_memory_or_belongs_to_another_machine_tells_nothing() {
        assert_eq!(x86("437 0x3 0x7ffd 0x7ffe 0x18 0x0 0x0 0x7ffd 0x7f"), Told::Nothing, "openat2");
        assert_eq!(x86("426 0x3 0x1 0x1 0x1 0x0 0x0 0x7ffd 0x7f"), Told::Nothing, "io_uring_enter");
        assert_eq!(x86("5 0x7ffd 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f"), Told::Nothing, "open of a 32-bit program");
        assert_eq!(told(b"56 0x1 0x2 0x0 0x0 0x0 0x0 0x7ffd 0x7f", "riscv64"), Told::Nothing);
        assert_eq!(x86("-1 0x7ffd 0x7f"), Told::Nothing);
        assert_eq!(x86(""), Told::Nothing);
        assert_eq!(x86("running\n"), Told::Running);
    }

    fn line(state: &str, flags: u64) -> Vec<u8> {
        format!("7 (a) R 1 (b) {state} 1 7 7 0 -1 {flags} 0 0").into_bytes()
    }

    #[test]
    fn a_held_thread_sleeps_and_a_name_is_no_state() {
        assert_eq!(posture(&line("D", 0x40_0000)), Some(Posture::Held));
        assert_eq!(posture(&line("D", 0x10)), Some(Posture::Worker));
        assert_eq!(posture(&line("D", 0x4000)), Some(Posture::Worker));
        assert_eq!(posture(&line("R", 0)), Some(Posture::Moves));
        for state in ["S", "T", "t", "Z", "I"] {
            assert_eq!(posture(&line(state, 0)), Some(Posture::Elsewhere), "{state}");
        }
        assert_eq!(posture(b"7 (a"), None);
    }

    #[test]
    fn one_reader_among_sleepers_is_a_reader() {
        assert_eq!(together([(Posture::Elsewhere, Told::Nothing), (Posture::Held, READ)]), Some(READ));
    }

    #[test]
    fn a_writer_or_an_untold_one_among_those_held_decides() {
        assert_eq!(together([(Posture::Held, READ), (Posture::Held, WRITE)]), Some(WRITE));
        assert_eq!(together([(Posture::Held, READ), (Posture::Held, Told::Nothing)]), Some(Told::Nothing));
        assert_eq!(together([(Posture::Held, READ), (Posture::Worker, READ)]), Some(Told::Nothing));
    }

    #[test]
    fn while_somebody_moves_a_reader_proves_nothing() {
        assert_eq!(together([(Posture::Held, READ), (Posture::Moves, Told::Running)]), None);
        assert_eq!(together([(Posture::Held, Told::Running)]), None);
        assert_eq!(together([(Posture::Elsewhere, READ)]), None, "the held one was not among them");
        assert_eq!(together([]), None);
    }

    #[test]
    fn the_lease_says_who_writes_and_the_registers_who_cuts() {
        let never = || -> Option<Told> { panic!("a writer needs no second word") };
        assert_eq!(access(Lease::Writer, never), Access::Write);
        assert_eq!(access(Lease::NoWriter, || Some(READ)), Access::Read);
        assert_eq!(access(Lease::NoWriter, || Some(WRITE)), Access::Write);
        for untold in [Told::Nothing, Told::Running] {
            assert_eq!(access(Lease::NoWriter, || Some(untold)), Access::Read, "the kernel's word stands");
        }
        assert_eq!(access(Lease::NoWriter, || None), Access::Read, "kept from us: the kernel's word stands");
        assert_eq!(access(Lease::Unknown, || Some(READ)), Access::Read);
        assert_eq!(access(Lease::Unknown, || None), Access::Write);
    }

    proptest! {
        #[test]
        fn any_lines_are_taken(line in proptest::collection::vec(any::<u8>(), 0..120)) {
            told(&line, "x86_64");
            posture(&line);
        }

        /// Against a model: the truth is one held thread with an access of its own, among others that do what they like.
        #[test]
        fn a_writer_never_passes_for_a_reader(
            others in proptest::collection::vec((0..4usize, 0..4usize), 0..6),
            at in 0..6usize,
            asleep in any::<bool>(),
        ) {
            let postures = [Posture::Moves, Posture::Held, Posture::Worker, Posture::Elsewhere];
            let tellings = [READ, WRITE, Told::Nothing, Told::Running];
            let mut threads: Vec<_> = others.iter().map(|&(p, t)| (postures[p], tellings[t])).collect();
            let held = if asleep { (Posture::Held, WRITE) } else { (Posture::Moves, Told::Running) };
            threads.insert(at % (threads.len() + 1), held);
            prop_assert_ne!(together(threads), Some(READ));
        }
    }
}
