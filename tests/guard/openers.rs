//! Processes that open protected files.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::{NOBODY, own_program};

/// Longer than anything here takes.
pub const SOON: Duration = Duration::from_secs(15);

/// `read`, `write`, `append`: opens the file and does that. Succeeds if it could. `linger`: opens it for writing, and lives
/// on, whether it could or not, until its input ends.
pub fn be(how: &str, path: &Path) -> ExitCode {
    let mut options = File::options();
    match how {
        "read" => options.read(true),
        "write" => options.write(true),
        "append" | "linger" => options.append(true),
        other => panic!("{other}"),
    };
    let done = options.open(path).and_then(|mut file| match how {
        "append" => std::io::Write::write_all(&mut file, b"B=2\n"),
        "read" => file.read_to_end(&mut Vec::new()).map(drop),
        _ => Ok(()),
    });
    if how == "linger" {
        let _it_ends = std::io::stdin().read_to_end(&mut Vec::new());
    }
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Opens `0`, `1`, … of the directory for writing, all at once from as many threads, and says of each on a line of its own
/// whether it could.
pub fn be_many(count: usize, dir: &Path) -> ExitCode {
    let barrier = Barrier::new(count);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let barrier = &barrier;
                let open = move || {
                    barrier.wait();
                    File::options().write(true).open(dir.join(number.to_string())).is_ok()
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, open).expect("starts")
            })
            .collect();
        for (number, thread) in threads.into_iter().enumerate() {
            println!("{number} {}", thread.join().expect("does not panic"));
        }
    });
    ExitCode::SUCCESS
}

/// Starts one as the user whose file it is.
pub fn open(how: &str, path: &Path) -> Child {
    opener(how, path).spawn().expect("starts")
}

pub fn opener(how: &str, path: &Path) -> Command {
    let mut command = Command::new(own_program());
    command.args(["--open", how]).arg(path).uid(NOBODY).gid(NOBODY).current_dir("/").stderr(Stdio::null());
    command
}

/// How it ended.
pub fn end(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return status;
        }
        assert!(Instant::now() < until, "it still waits");
        std::thread::yield_now();
    }
}

/// Whether it could open, once it has ended.
pub fn opened(mut child: Child) -> bool {
    end(&mut child).success()
}

/// Waits until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}
