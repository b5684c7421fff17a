//! The filter as the kernel would run it: its programs, interpreted.

use super::*;

const PROCESS: u32 = 4242;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const PERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const NOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64` of linux/audit.h.
fn own_machine() -> u32 {
    if std::env::consts::ARCH == "x86_64" { 0xc000_003e } else { 0xc000_00b7 }
}

/// `struct seccomp_data`, as the programs read it.
fn data(call: c_long, machine: u32, arguments: [u64; 6]) -> Vec<u8> {
    let mut bytes = (call as i32).to_ne_bytes().to_vec();
    bytes.extend(machine.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
    bytes
}

/// Runs a program of the instructions that the crate makes; any other is an error of the test.
fn run(program: &BpfProgram, data: &[u8]) -> u32 {
    let (mut at, mut accumulator) = (0, 0_u32);
    loop {
        let step = &program[at];
        at += 1;
        let jump = |met: bool| usize::from(if met { step.jt } else { step.jf });
        match u32::from(step.code) {
            // BPF_LD | BPF_W | BPF_ABS
            0x20 => {
                let from = step.k as usize;
                accumulator = u32::from_ne_bytes(data[from..from + 4].try_into().expect("four bytes"));
            }
            // BPF_ALU | BPF_AND | BPF_K
            0x54 => accumulator &= step.k,
            // BPF_JMP | BPF_JA
            0x05 => at += step.k as usize,
            // BPF_JMP | BPF_JEQ, JGT, JGE | BPF_K
            0x15 => at += jump(accumulator == step.k),
            0x25 => at += jump(accumulator > step.k),
            0x35 => at += jump(accumulator >= step.k),
            // BPF_RET | BPF_K
            0x06 => return step.k,
            code => panic!("an instruction {code:#x} that nobody expected"),
        }
    }
}

/// What the kernel makes of a call: the stricter of the two answers.
fn answer_on(machine: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    let [first, second] = programs(&[CALLS, OLD_CALLS], PROCESS).expect("they can be made");
    let data = data(call, machine, arguments);
    let answers = [run(&first, &data), run(&second, &data)];
    // The order of strictness is the order of the numbers, taken as signed ones (SECCOMP_RET_KILL_PROCESS is negative).
    answers.into_iter().min_by_key(|answer| answer.cast_signed()).expect("there are two")
}

/// All that a files worker may do.
fn all() -> impl Iterator<Item = &'static (c_long, With)> {
    [NEEDED, OLD_NEEDED, CALLS, OLD_CALLS].into_iter().flatten()
}

fn answer(call: c_long, arguments: [u64; 6]) -> u32 {
    answer_on(own_machine(), call, arguments)
}

#[test]
fn every_number_but_those_of_the_list_is_refused() {
    let listed: Vec<c_long> = all().map(|(call, _)| *call).collect();
    for call in -1..1024 {
        if !listed.contains(&call) {
            assert_eq!(answer(call, [0; 6]), PERM, "call {call}");
        }
    }
    for (call, with) in all() {
        if matches!(with, Any) && *call != libc::SYS_clone3 {
            assert_eq!(answer(*call, [u64::MAX; 6]), ALLOW, "call {call}");
        }
    }
}

#[test]
fn no_call_is_listed_twice() {
    let mut listed: Vec<c_long> = all().map(|(call, _)| *call).collect();
    listed.sort_unstable();
    let count = listed.len();
    listed.dedup();
    assert_eq!(listed.len(), count);
}

#[test]
fn the_old_numbers_and_those_of_another_machine_are_no_way_round() {
    // `__X32_SYSCALL_BIT`: the same calls by other numbers, on x86-64.
    assert_eq!(answer(libc::SYS_read | 0x4000_0000, [0; 6]), PERM);
    // `AUDIT_ARCH_I386`, where 11 is execve and 3 is read.
    for call in [3, 11] {
        assert_eq!(answer_on(0x4000_0003, call, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }
}

#[test]
fn a_thread_may_be_started_and_nothing_else() {
    // As the GNU C library does it, and musl.
    for flags in [0x3d_0f00_u64, 0x7d_0f00] {
        assert_eq!(answer(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), ALLOW, "{flags:#x}");
        for more in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
            libc::CLONE_VFORK,
            libc::CLONE_PARENT,
            libc::CLONE_PTRACE,
            libc::CLONE_PIDFD,
            libc::SIGCHLD,
        ] {
            let flags = flags | u64::from(more.cast_unsigned());
            assert_eq!(answer(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), PERM, "{flags:#x}");
        }
        let without = flags & !u64::from(libc::CLONE_THREAD.cast_unsigned());
        assert_eq!(answer(libc::SYS_clone, [without, 0, 0, 0, 0, 0]), PERM);
    }
    // fork(3) and posix_spawn(3).
    for flags in [libc::SIGCHLD, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD] {
        assert_eq!(answer(libc::SYS_clone, [u64::from(flags.cast_unsigned()), 0, 0, 0, 0, 0]), PERM);
    }
    assert_eq!(answer(libc::SYS_clone3, [0; 6]), NOSYS, "so that the C library takes clone");
}

#[test]
fn memory_is_never_made_executable() {
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        for protection in 0..8_u64 {
            let expected = if protection & 4 == 0 { ALLOW } else { PERM };
            assert_eq!(answer(call, [0, 4096, protection, 0, 0, 0]), expected, "call {call}, {protection}");
        }
    }
}

#[test]
fn arguments_are_compared_where_they_matter() {
    let owner = u64::from(libc::F_SETOWN.cast_unsigned());
    assert_eq!(answer(libc::SYS_fcntl, [0, owner, 0, 0, 0, 0]), PERM, "signals to others by way of a descriptor");
    assert_eq!(answer(libc::SYS_fcntl, [0, u64::from(libc::F_GETFL.cast_unsigned()), 0, 0, 0, 0]), ALLOW);
    assert_eq!(answer(libc::SYS_utimensat, [3, 0, 0x1000, 0, 0, 0]), ALLOW, "an open file");
    assert_eq!(answer(libc::SYS_utimensat, [3, 0x1000, 0x1000, 0, 0, 0]), PERM, "a path");
    assert_eq!(answer(libc::SYS_utimensat, [3, 1 << 32, 0x1000, 0, 0, 0]), PERM, "a path high in memory");
    let own = u64::from(PROCESS);
    assert_eq!(answer(libc::SYS_tgkill, [own, own, 6, 0, 0, 0]), ALLOW);
    assert_eq!(answer(libc::SYS_tgkill, [own + 1, own + 1, 9, 0, 0, 0]), PERM);
    assert_eq!(answer(libc::SYS_prlimit64, [0, 3, 0, 0x1000, 0, 0]), ALLOW, "asking for one's own");
    assert_eq!(answer(libc::SYS_prlimit64, [0, 3, 0x1000, 0, 0, 0]), PERM, "setting it");
    assert_eq!(answer(libc::SYS_prlimit64, [own, 3, 0, 0x1000, 0, 0]), PERM, "another process's");
    assert_eq!(answer(libc::SYS_prctl, [u64::from(libc::PR_SET_NAME.cast_unsigned()), 0, 0, 0, 0, 0]), ALLOW);
    assert_eq!(answer(libc::SYS_prctl, [u64::from(libc::PR_SET_DUMPABLE.cast_unsigned()), 1, 0, 0, 0, 0]), PERM);
}

#[test]
fn no_call_stands_in_two_of_the_lists_that_are_put_in_force_together() {
    for lists in [&[CALLS, OLD_CALLS][..], &[crate::linux::guardian::calls::CALLS]] {
        let all = [NEEDED, OLD_NEEDED].iter().chain(lists).copied().flatten();
        let mut known = std::collections::BTreeSet::new();
        for (call, _) in all {
            assert!(known.insert(*call), "call {call} stands twice: of two conditions the last one would count");
        }
    }
}
