//! What the cases of a program came to that is its own harness, in the words of libtest.

use std::process::{ExitCode, Output};

/// Counts them as they end.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Tells of one, and, if it has failed, what it printed.
    pub fn told(&mut self, name: &str, output: Output) {
        let is_good = output.status.success();
        println!("test {name} ... {}", if is_good { "ok" } else { "FAILED" });
        if is_good {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
        }
    }

    /// The last line, as programs read it, and how this one ends.
    pub fn end(self) -> ExitCode {
        let Self { passed, failed } = self;
        let result = if failed == 0 { "ok" } else { "FAILED" };
        println!("\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
