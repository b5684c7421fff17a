//! Colour in what people read: whether there is any, and the few colours there are.
//!
//! Promise: without colour not one byte is added, and what is painted reads the same without. `NO_COLOR` counts as
//! <https://no-color.org> says: set and not empty. `--color` is asked first.

use platform::environment::Environment;

use super::args::Color;

/// Whether this output may have colour.
pub fn wants_colour(color: Color, environment: &Environment, is_terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            is_terminal && !environment.is_set("NO_COLOR") && environment.text("TERM").as_deref() != Some("dumb")
        }
    }
}

/// Paints, or leaves plain.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether there is colour.
    pub is_on: bool,
}

impl Paint {
    /// What stands out.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What stands back.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// What went wrong, or was put back.
    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    /// What is well.
    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// What deserves a look.
    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment {
            args: Vec::new(),
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: "/".into(),
            umask: 0o022,
            uid: 0,
            euid: 0,
        }
    }

    #[test]
    fn auto_is_for_terminals_that_were_not_told_otherwise() {
        let auto = |variables: &[_], is_terminal| wants_colour(Color::Auto, &environment(variables), is_terminal);
        assert!(auto(&[], true));
        assert!(!auto(&[], false));
        assert!(!auto(&[("NO_COLOR", "1")], true));
        assert!(auto(&[("NO_COLOR", "")], true));
        assert!(!auto(&[("TERM", "dumb")], true));
    }

    #[test]
    fn the_option_beats_the_environment_and_the_terminal() {
        let no_color = environment(&[("NO_COLOR", "1")]);
        assert!(wants_colour(Color::Always, &no_color, false));
        assert!(!wants_colour(Color::Never, &environment(&[]), true));
    }

    #[test]
    fn without_colour_nothing_is_added() {
        let plain = Paint { is_on: false };
        assert_eq!([plain.bold("a"), plain.dim("a"), plain.red("a"), plain.green("a"), plain.yellow("a")], ["a"; 5]);
        assert_eq!(Paint { is_on: true }.red("a"), "\x1b[31ma\x1b[0m");
        assert_eq!(Paint { is_on: true }.red(""), "");
    }
}
