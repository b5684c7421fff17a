//! What `keep doctor` says of the programs that a person trusts: whether each entry is still about what it was written for.

use platform::Access;

use super::finding::{Area, Finding, finding};
use crate::text::escaped;
use crate::trust::{FILE_NAME, Fit, Trusted};

/// A row for each entry, or one that says why there are none.
pub fn findings(trusted: &Result<Vec<(Trusted, Fit)>, String>) -> Vec<Finding> {
    match trusted {
        Ok(entries) => entries.iter().map(|(entry, fit)| row(entry, fit)).collect(),
        Err(reason) => vec![Finding {
            works: Some(false),
            detail: Some(format!("{reason}; --hold does not start with it")),
            raise: Some("mend it, or take it away to trust no program".to_owned()),
            ..finding(Area::Trust, FILE_NAME, "it can be read, and nobody else can write it")
        }],
    }
}

fn row(entry: &Trusted, fit: &Fit) -> Finding {
    let may = |access| entry.may.contains(&access);
    let promise = match (may(Access::Read), may(Access::Write)) {
        (true, true) => "it may open files for reading and writing without a question",
        (true, false) => "it may open files for reading without a question",
        (false, _) => "it may open files for writing without a question",
    };
    let (found, raise) = match fit {
        Fit::Same => (None, None),
        Fit::Other(digest) => (
            Some(format!("its sha256 is {digest}, and another is written down: it is asked about")),
            Some("write that down, if you know why it changed".to_owned()),
        ),
        Fit::Elsewhere(path) => {
            let path = escaped(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
            let raise = format!("program = \"{path}\", if you trust that one");
            (Some(format!("a link leads to {path}, and no process says it runs this one")), Some(raise))
        }
        Fit::TooLarge => (Some("it has more than 512 MiB".to_owned()), Some("trust a smaller program".to_owned())),
        Fit::Unreadable(reason) => {
            (Some(reason.clone()), Some("name a program that is there, or take the entry away".to_owned()))
        }
    };
    let rules: Vec<&str> = entry.rules.iter().map(|rule| rule.name()).collect();
    let paths: Vec<String> = entry.paths.iter().map(|glob| escaped(glob.text().as_bytes())).collect();
    let only = |what: &str, of: String| (!of.is_empty()).then(|| format!("only {what} {of}"));
    let detail = found.into_iter().chain(only("under", rules.join(", "))).chain(only("at", paths.join(", ")));
    let detail = detail.collect::<Vec<_>>().join("; ");
    Finding {
        works: Some(*fit == Fit::Same),
        detail: (!detail.is_empty()).then_some(detail),
        raise,
        ..finding(Area::Trust, &escaped(&entry.program), promise)
    }
}
