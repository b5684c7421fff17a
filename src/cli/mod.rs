//! The command line: parts are put together here once, and results become text, JSON and exit codes.

pub mod args;
mod begin;
mod collectors;
mod diagnosis;
mod doctor;

pub mod exit;
mod gate;
mod gate_connector;
mod gate_site;
mod grants;
mod ground;
mod guarded;
mod hold;
mod log;
pub(crate) mod log_line;
mod log_notice;
mod mcp;
mod pages;
mod paint;
mod quarantine;
mod recover;
mod rules;
mod watch;

use std::io::{IsTerminal as _, Write as _};

use clap::Parser as _;
use platform::environment::{Environment, EnvironmentError};

use args::{Cli, Command};
use exit::{Exit, Refusal, RefusalCode, causes};

use crate::gate::worker;

/// Runs the command line of this process and returns the exit code.
pub fn main(environment: Result<Environment, EnvironmentError>) -> u8 {
    let environment = match environment {
        // Not a command: another process of ours started this one, and nobody reads what it would print.
        Ok(environment) if matches!(&environment.args[..], [_, only] if only == worker::ARGUMENT) => {
            return worker::worker_main();
        }
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
    // These give it up once it has been used.
    if !matches!(cli.command, Command::Watch(_) | Command::Recover(_) | Command::Doctor(_))
        && !platform::privilege::is_root()
        && let Err(error) = platform::privilege::drop_capabilities()
    {
        let hint = "take the capabilities off the program: setcap -r";
        return refuse(&Refusal::new(RefusalCode::Privilege, causes(&error), hint), false);
    }
    match &cli.command {
        Command::Watch(args) => watch::run(args, cli.color, &environment),
        Command::Gate(args) => gate::run(args, cli.color, &environment),
        Command::Mcp(args) => mcp::run(args, environment),
        Command::Grants(args) => grants::run(args, &environment),
        Command::Log(args) => log::run(args, cli.color, &environment),
        Command::Quarantine(args) => quarantine::run(args, cli.color, &environment),
        Command::Recover(args) => recover::run(args, &environment),
        Command::Doctor(args) => doctor::run(args, cli.color, &environment),
        Command::Completions(args) => pages::completions(args),
        Command::Man(args) => pages::man(args),
    }
}

/// A line of what was asked for.
fn print_line(line: &str) {
    // A reader that has gone away is no reason to end otherwise than we do.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A line for the person, beside what was asked for.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether a person looks at standard output.
fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Says why a command did not start, and returns its exit code.
fn refuse(refusal: &Refusal, json: bool) -> u8 {
    for line in refusal.lines() {
        say(&line);
    }
    if json {
        print_line(&crate::text::json_line(&refusal.to_json()));
    }
    Exit::CannotStart.code()
}
