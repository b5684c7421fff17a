//! `keep completions` and `keep man`: made from the command line's own description, so that they cannot differ from it.

use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::exit::Exit;

/// Runs `keep completions` and returns the exit code.
pub fn completions(args: &CompletionsArgs) -> u8 {
    // It is written to memory first: clap_complete ends the program if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "keep", &mut script);
    print(&script)
}

/// Runs `keep man` and returns the exit code.
pub fn man(args: &ManArgs) -> u8 {
    let mut whole = Cli::command();
    whole.build();
    let mut page = &whole;
    for name in &args.command {
        match page.find_subcommand(name) {
            Some(command) => page = command,
            None => {
                let message = format!("keep has no command {}", crate::text::escaped(name.as_encoded_bytes()));
                let _ = whole.error(ErrorKind::InvalidSubcommand, message).print();
                return Exit::CannotStart.code();
            }
        }
    }
    match render(page.clone()) {
        Ok(page) => print(&page),
        Err(_) => Exit::Broke.code(),
    }
}

fn render(command: Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

fn print(bytes: &[u8]) -> u8 {
    let mut output = std::io::stdout().lock();
    // A reader that has gone away wanted no more.
    let _ = output.write_all(bytes).and_then(|()| output.flush());
    Exit::Clean.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &Command, see: &mut dyn FnMut(&Command)) {
        see(command);
        command.get_subcommands().filter(|command| command.get_name() != "help").for_each(|command| each(command, see));
    }

    fn built() -> Command {
        let mut command = Cli::command();
        command.build();
        command
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        let mut seen = 0;
        each(&built(), &mut |command| {
            seen += 1;
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Example:"), "{} has none", command.get_name());
        });
        assert!(seen >= 11, "only {seen} commands were looked at");
    }

    #[test]
    fn every_command_has_a_manual_page_with_its_options() {
        each(&built(), &mut |command| {
            let page = String::from_utf8(render(command.clone()).expect("renders")).expect("is text");
            assert!(page.contains(".SH NAME"), "{}", command.get_name());
            let options = command.get_arguments().filter_map(clap::Arg::get_long);
            for option in options {
                // A hyphen is written `\-` in a page.
                let option = option.replace('-', "\\-");
                assert!(page.contains(&option), "{} does not tell of {option}", command.get_name());
            }
        });
    }

    #[test]
    fn the_description_of_the_command_line_holds() {
        Cli::command().debug_assert();
    }
}
