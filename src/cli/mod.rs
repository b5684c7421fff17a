//! The command line: parts are put together here once, and results become text, JSON and exit codes.

pub mod args;
pub mod exit;
mod ground;
mod rules;
mod watch;

use std::io::Write as _;

use clap::Parser as _;
use platform::environment::{Environment, EnvironmentError};

use args::{Cli, Command};
use exit::{Exit, Refusal, RefusalCode, causes};

/// Runs the command line of this process and returns the exit code.
pub fn main(environment: Result<Environment, EnvironmentError>) -> u8 {
    let environment = match environment {
        Ok(environment) => environment,
        Err(error) => {
            let refusal = Refusal::new(RefusalCode::Root, causes(&error), "start in a directory that exists");
            return refuse(&refusal, false);
        }
    };
    let cli = match Cli::try_parse_from(&environment.args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way, too; those go to standard output and are no failure.
            let _ = error.print();
            return if error.use_stderr() { Exit::CannotStart.code() } else { Exit::Clean.code() };
        }
    };
    match &cli.command {
        Command::Watch(args) => watch::run(args, cli.color, &environment),
        _ => Exit::Broke.code(),
    }
}

/// Says why a command did not start, and returns its exit code.
fn refuse(refusal: &Refusal, json: bool) -> u8 {
    for line in refusal.lines() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    if json {
        let _ = writeln!(std::io::stdout(), "{}", crate::text::json_line(&refusal.to_json()));
    }
    Exit::CannotStart.code()
}
