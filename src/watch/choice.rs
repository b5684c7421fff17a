//! Choosing one path of several: a numbered list that gets shorter with every letter.
//!
//! Promise: pure; only Enter takes, and it takes the one that is marked. A lone Escape leaves, and so does time.
//! Limit: letters are ASCII, as keys that count are single bytes; a path of other letters is found by its number.

use std::time::Duration;

use platform::{Moment, Place};

use crate::ask::{Block, Typed, certain};

use super::lock::minutes::MINUTE;

/// Without a key for so long it closes by itself,
const PATIENCE: Duration = Duration::from_secs(20);
/// and sooner if questions wait: they have deadlines.
const WITH_QUESTIONS: Duration = Duration::from_secs(5);
/// Rows of the list.
const ROWS: usize = 9;
/// Letters that are taken.
const LONGEST: usize = 64;

/// What a path is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To unlock it for a minute.
    Unlock,
    /// To be asked about it again, though it is contested.
    AskAgain,
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What.
    pub place: Place,
    /// Its name as people see it.
    pub shown: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

impl Purpose {
    const fn verb(self) -> &'static str {
        match self {
            Self::Unlock => "unlocks",
            Self::AskAgain => "takes it back",
        }
    }
}

impl Candidate {
    fn name(&self) -> String {
        let slash = if self.is_folder { "/" } else { "" };
        format!("{}{slash}", certain(&self.shown))
    }
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// This.
    This(Candidate),
    /// Nothing.
    Leave,
    /// It goes on.
    NotYet,
}

/// The open choice.
#[derive(Debug)]
pub struct Choice {
    /// The same as long as it is the same choice.
    pub id: u64,
    /// What for.
    pub purpose: Purpose,
    all: Vec<Candidate>,
    typed: String,
    version: u64,
    last: Moment,
}

impl Choice {
    /// A choice of these, which are not none.
    pub fn new(id: u64, purpose: Purpose, all: Vec<Candidate>, now: Moment) -> Self {
        Self { id, purpose, all, typed: String::new(), version: 0, last: now }
    }

    /// Goes up when what is shown differs.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When it closes by itself.
    pub fn deadline(&self, waiting: usize) -> Moment {
        self.last + if waiting > 0 { WITH_QUESTIONS } else { PATIENCE }
    }

    /// Takes a key.
    pub fn key(&mut self, typed: Typed, now: Moment) -> Chosen {
        self.last = now;
        match typed {
            Typed::Escape => return Chosen::Leave,
            Typed::Byte(b'\r' | b'\n') => {
                return self.matches().next().map_or(Chosen::NotYet, |(_, first)| Chosen::This(first.clone()));
            }
            Typed::Byte(0x08 | 0x7f) => {
                self.typed.pop();
            }
            Typed::Byte(byte @ 0x20..=0x7e) if self.typed.len() < LONGEST => self.typed.push(char::from(byte)),
            _ => return Chosen::NotYet,
        }
        self.version += 1;
        Chosen::NotYet
    }

    /// What is left of the list, with the numbers: the one of that number first, then those whose name holds the letters.
    fn matches(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let number = self.typed.parse::<usize>().ok();
        let numbered = || (1..).zip(&self.all);
        let by_number = numbered().filter(move |(at, _)| Some(*at) == number);
        let by_name = numbered().filter(move |(at, candidate)| {
            Some(*at) != number && candidate.shown.to_lowercase().contains(&self.typed.to_lowercase())
        });
        by_number.chain(by_name)
    }

    /// How it stands on the screen.
    pub fn block(&self, waiting: usize) -> Block {
        let mut list: Vec<String> = self
            .matches()
            .take(ROWS)
            .enumerate()
            .map(|(row, (number, candidate))| {
                let mark = if row == 0 { '>' } else { ' ' };
                format!("{mark} {number:>2}  {}", candidate.name())
            })
            .collect();
        let more = self.matches().count().saturating_sub(ROWS);
        if more > 0 {
            list.push(format!("      and {more} more"));
        }
        let mut above = Vec::new();
        if waiting > 0 {
            above.push(format!("  waiting: {waiting} more"));
        }
        let (subject, after) = match self.matches().next() {
            Some((_, first)) => match self.purpose {
                Purpose::Unlock => (format!("unlock {}", first.name()), format!(" for {} s? ", MINUTE.as_secs())),
                Purpose::AskAgain => (format!("ask about {}", first.name()), " again? ".to_owned()),
            },
            None => {
                let nothing = match self.purpose {
                    Purpose::Unlock => "nothing locked",
                    Purpose::AskAgain => "nothing contested",
                };
                (nothing.to_owned(), format!(" has \"{}\" in its name. ", self.typed))
            }
        };
        let filter = if self.typed.is_empty() { String::new() } else { format!(" [{}]", self.typed) };
        Block {
            list,
            above,
            before: "keep watch: ".to_owned(),
            subject,
            after,
            ask: format!("Number or letters{filter}, "),
            keys: format!("Enter {} / Esc leaves; closes in ", self.purpose.verb()),
            unit: "s".to_owned(),
            ..Block::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use platform::RelPath;

    use super::*;

    const NAMES: [&str; 4] = [".claude/settings.json", ".env", ".git/config", "svc/.env"];

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn choice() -> Choice {
        let candidate = |name: &&str| Candidate {
            place: Place::tree(RelPath::parse(name.as_bytes()).expect("a path")),
            shown: (*name).to_owned(),
            is_folder: false,
        };
        Choice::new(1, Purpose::Unlock, NAMES.iter().map(candidate).collect(), at(0))
    }

    fn typed(choice: &mut Choice, keys: &[u8]) -> Chosen {
        let mut chosen = Chosen::NotYet;
        for key in keys {
            chosen = choice.key(Typed::Byte(*key), at(1));
        }
        chosen
    }

    fn taken(keys: &[u8]) -> Option<String> {
        match typed(&mut choice(), keys) {
            Chosen::This(candidate) => Some(candidate.shown),
            _ => None,
        }
    }

    #[test]
    fn enter_takes_the_first_of_what_letters_and_numbers_leave() {
        assert_eq!(taken(b"\r").as_deref(), Some(NAMES[0]));
        assert_eq!(taken(b"env\r").as_deref(), Some(".env"));
        assert_eq!(taken(b"ENV\r").as_deref(), Some(".env"));
        assert_eq!(taken(b"svc\n").as_deref(), Some("svc/.env"));
        assert_eq!(taken(b"4\r").as_deref(), Some("svc/.env"));
        assert_eq!(taken(b"gitx\x7f/\r").as_deref(), Some(".git/config"));
        assert_eq!(taken(b"nothing like it\r"), None);
    }

    #[test]
    fn letters_that_answer_a_question_answer_nothing_here() {
        assert_eq!(taken(b"a"), None);
        assert_eq!(taken(b"r"), None);
    }

    #[test]
    fn escape_leaves_and_other_keys_do_nothing() {
        let mut choice = choice();
        assert_eq!(choice.key(Typed::Idle(b'u'), at(1)), Chosen::NotYet);
        assert_eq!(choice.version(), 0);
        assert_eq!(choice.key(Typed::Escape, at(1)), Chosen::Leave);
    }

    #[test]
    fn it_closes_by_itself_and_sooner_while_questions_wait() {
        let mut choice = choice();
        assert_eq!(choice.deadline(0), at(20));
        assert_eq!(choice.deadline(1), at(5));
        typed(&mut choice, b"e");
        assert_eq!(choice.deadline(1), at(6));
    }

    #[test]
    fn the_marked_one_is_the_one_that_is_named_and_a_long_list_is_counted() {
        let mut choice = choice();
        typed(&mut choice, b"env");
        let block = choice.block(2);
        assert_eq!(block.list, [">  2  .env", "   4  svc/.env"]);
        assert_eq!((block.subject.as_str(), block.above.len()), ("unlock .env", 1));
        choice.all = (0..30).map(|_| choice.all[0].clone()).collect();
        choice.typed.clear();
        assert_eq!(choice.block(0).list.last().map(String::as_str), Some("      and 21 more"));
    }

    #[test]
    fn it_says_what_it_is_for() {
        let mut choice = choice();
        choice.purpose = Purpose::AskAgain;
        let Block { subject, after, keys, .. } = choice.block(0);
        assert_eq!(subject + &after, "ask about .claude/settings.json again? ");
        assert_eq!(keys, "Enter takes it back / Esc leaves; closes in ");
        typed(&mut choice, b"xyz");
        assert_eq!(choice.block(0).subject, "nothing contested");
    }

    #[test]
    fn a_name_cannot_draw() {
        let mut choice = choice();
        choice.all[0].shown = "a\u{202e}b".to_owned();
        assert!(!choice.block(0).subject.contains('\u{202e}'));
    }
}
