//! The command `keep`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(keepwatch::cli::main(platform::environment::Environment::from_process()))
}
