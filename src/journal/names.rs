//! Names as values: how rules, modes, kinds and digests stand in JSON, each by the name it has everywhere else.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::HeldOutcome;
use crate::baseline::ChangeKind;
use crate::digest::Digest;
use crate::rules::{Mode, Rule};

/// Reads a string and looks it up; the error says what kind of name was not known.
struct Named<T> {
    what: &'static str,
    find: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for Named<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        (self.find)(name).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }
}

macro_rules! by_name {
    ($type:ty, $what:literal, $name:expr, $find:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name: fn(&$type) -> _ = $name;
                serializer.collect_str(&name(self))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Named { what: $what, find: $find })
            }
        }
    };
}

by_name!(Rule, "the name of a rule", |rule| rule.name(), Rule::from_name);
by_name!(Mode, "the name of a mode", |mode| mode.name(), |name| {
    [Mode::Report, Mode::Restore].into_iter().find(|mode| mode.name() == name)
});
by_name!(ChangeKind, "the name of a kind of change", |kind| kind.name(), ChangeKind::from_name);
by_name!(HeldOutcome, "what an open came to", |outcome| outcome.name(), HeldOutcome::from_name);
by_name!(Digest, "64 hex digits", |digest| digest.to_string(), Digest::parse);

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug>(value: T, json: &str) {
        assert_eq!(serde_json::to_string(&value).expect("serializes"), json);
        assert_eq!(serde_json::from_str::<T>(json).expect("parses"), value);
    }

    #[test]
    fn names_in_json_are_the_names_everywhere() {
        for rule in Rule::ALL {
            there_and_back(rule, &format!("\"{rule}\""));
        }
        there_and_back(Mode::Restore, "\"restore\"");
        there_and_back(Mode::Report, "\"report\"");
        there_and_back(ChangeKind::Replaced, "\"replaced\"");
        there_and_back(Digest::of(b""), "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"");
    }

    #[test]
    fn a_name_nobody_knows_is_named_in_the_error() {
        let error = serde_json::from_str::<Rule>("\"tea_leaves\"").expect_err("no such rule");
        assert!(error.to_string().contains("tea_leaves"), "{error}");
        assert!(error.to_string().contains("the name of a rule"), "{error}");
    }
}
