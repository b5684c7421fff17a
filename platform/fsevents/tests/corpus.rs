//! Sequences of rows from public reports and from Apple's documentation, with the hints that must follow.
//!
//! A sequence is a paragraph of `key: value` lines in `corpus/*.txt`:
//! `case` its name, `source` where it was reported, `volume` `exact` or `folding` (the default), `root` the path the root is
//! known by, `tree` and `known` what is there, and known, before the walk, `do` what is done then, `row` a row (flags, path, and `#path` if the
//! row has the inode of what is there now), `--` the end of a batch, `stirred` what kqueue tells, `hints` what must follow:
//! all of it, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Moment;
use crate::event::{Hint, LostCause, Place, RootId};
use crate::relpath::RelPath;

use super::super::{Engine, Flags, Row, Spelling};
use super::memory::Disk;
use crate::simulation::{Few, Step};

const FILES: [(&str, &str); 6] = [
    ("flags", include_str!("corpus/flags.txt")),
    ("replacing", include_str!("corpus/replacing.txt")),
    ("folders", include_str!("corpus/folders.txt")),
    ("losses", include_str!("corpus/losses.txt")),
    ("paths", include_str!("corpus/paths.txt")),
    ("links", include_str!("corpus/links.txt")),
];

fn place(path: &str) -> Place {
    let path = if path == "." { String::new() } else { unescape(path) };
    Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path in the corpus"))
}

fn step(text: &str) -> Step {
    let words: Vec<_> = unescape(text).split(' ').map(str::to_owned).collect();
    let one = || words[1].clone();
    match (words[0].as_str(), words.len()) {
        ("write", 2) => Step::Write(one()),
        ("remove", 2) => Step::Remove(one()),
        ("rmtree", 2) => Step::RemoveAll(one()),
        ("mkdir", 2) => Step::MakeDirs(one()),
        ("symlink", 2) => Step::Symlink(one()),
        ("chmod", 2) => Step::Bits(one()),
        ("shut", 2) => Step::Shut(one()),
        ("open", 2) => Step::Open(one()),
        ("rename", 3) => Step::Rename(one(), words[2].clone()),
        ("exchange", 3) => Step::Exchange(one(), words[2].clone()),
        ("link", 3) => Step::Link(one(), words[2].clone()),
        _ => panic!("no such step: {text}"),
    }
}

fn flags(text: &str) -> Flags {
    text.split('|').filter(|name| *name != "None").fold(Flags::default(), |all, name| {
        let found = Flags::NAMES.iter().find(|(known, _)| *known == name);
        all.with(found.unwrap_or_else(|| panic!("no such flag: {name}")).1)
    })
}

fn row(text: &str, id: &mut u64, disk: &Disk) -> Row {
    let (names, rest) = text.split_once(' ').expect("flags and a path");
    let flags = flags(names);
    let (rest, file) = match rest.split_once(" #") {
        Some((rest, path)) => (rest, Some(disk.inode(path).expect("a path that is there"))),
        None => (rest, None),
    };
    let (path, number) = match rest.split_once(" @") {
        Some((path, number)) => (path, number.parse().expect("a number")),
        None => {
            *id += 7;
            (rest, *id)
        }
    };
    let number = if flags.any(Flags::ROOT_CHANGED) { 0 } else { number };
    Row { path: (path != "?").then(|| unescape(path).into_bytes()), flags, id: number, file }
}

/// A hint as the corpus writes it; no moment, since only one passes.
fn said(hint: &Hint) -> Option<String> {
    let path = |place: &Place| match place.path.is_root() {
        true => ".".to_owned(),
        false => String::from_utf8_lossy(place.path.as_bytes()).into_owned(),
    };
    Some(match hint {
        Hint::Touched { place, .. } => format!("touched {}", path(place)),
        Hint::Vanished { place, .. } => format!("vanished {}", path(place)),
        Hint::Appeared(place) => format!("appeared {}", path(place)),
        Hint::Found(place) => format!("found {}", path(place)),
        Hint::Lost(LostCause::Unreadable(place)) => format!("unreadable {}", path(place)),
        Hint::Lost(cause) => format!("lost {}", format!("{cause:?}").to_lowercase()),
        Hint::Broken(why) => format!("broken {why}"),
        Hint::Walked { .. } => return None,
    })
}

struct Bench {
    engine: Engine<Disk>,
    now: Moment,
}

impl Bench {
    fn settle(&mut self) -> BTreeSet<String> {
        let mut hints = BTreeSet::new();
        loop {
            let left = self.engine.tick(self.now);
            while self.engine.is_busy() {
                self.engine.step(self.now);
            }
            hints.extend(self.engine.take_hints().iter().filter_map(said));
            match left {
                Some(left) => self.now = self.now + left,
                None if !self.engine.is_busy() => return hints,
                None => {}
            }
        }
    }
}

/// Runs one sequence; the hints it brought and those that it must bring.
fn run(lines: &[(&str, &str)]) -> (BTreeSet<String>, BTreeSet<String>) {
    let all =
        |key: &str| lines.iter().filter(move |(found, _)| *found == key).map(|(_, value)| *value).collect::<Vec<_>>();
    let one =
        |key: &str, default: &'static str| all(key).first().map_or(default.to_owned(), |value| (*value).to_owned());
    let disk = Disk::new(one("volume", "folding") == "folding");
    for path in all("tree").iter().flat_map(|value| value.split(' ')).map(unescape) {
        if let Some((dir, _)) = path.rsplit_once('/').filter(|(dir, _)| *dir != "..") {
            disk.act(&Step::MakeDirs(dir.to_owned()));
        }
        if !path.ends_with('/') {
            disk.act(&Step::Write(path.clone()));
        }
        assert!(disk.inode(path.trim_end_matches('/')).is_some(), "{path} cannot be made");
    }
    let known = all("known").iter().flat_map(|value| value.split(' ')).map(place).collect();
    let root = one("root", "/Users/me/repo");
    let engine = Engine::new(disk.clone(), Arc::new(Few), known, vec![Spelling::new([root.as_bytes()])]);
    let mut bench = Bench { engine, now: Moment::from_nanos(1) };
    bench.settle();
    let (mut id, mut batch, mut hints) = (1000, Vec::new(), BTreeSet::new());
    for (key, value) in lines.iter().chain([&("--", "")]) {
        match *key {
            "do" => {
                disk.act(&step(value));
            }
            "row" => batch.push(row(value, &mut id, &disk)),
            "stirred" => bench.engine.stirred(&place(value), bench.now),
            "--" => {
                bench.engine.rows(RootId(0), &std::mem::take(&mut batch), bench.now);
                hints.extend(bench.settle());
            }
            _ => {}
        }
    }
    let wanted = all("hints").into_iter().flat_map(|value| value.split("; ")).filter(|hint| *hint != "none");
    (hints, wanted.map(unescape).collect())
}

/// Decomposed letters are written out, since an editor may compose them.
fn unescape(text: &str) -> String {
    text.replace("\\u{301}", "\u{301}")
}

fn sequences(text: &'static str) -> impl Iterator<Item = Vec<(&'static str, &'static str)>> {
    let line = |line: &'static str| line.split_once(": ").unwrap_or((line, ""));
    let paragraphs = text.split("\n\n").map(move |text| {
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(line).collect::<Vec<_>>()
    });
    paragraphs.filter(|lines| !lines.is_empty())
}

#[test]
fn every_recorded_sequence_brings_its_hints_and_no_others() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, text) in FILES {
        for lines in sequences(text) {
            count += 1;
            for (key, _) in &lines {
                let keys = ["case", "source", "volume", "root", "tree", "known", "do", "row", "--", "stirred", "hints"];
                assert!(keys.contains(key), "{file}: no such key: {key:?}");
            }
            let named = |key: &str| lines.iter().find(|(found, _)| *found == key).map(|(_, value)| *value);
            let (Some(case), Some(source), Some(_)) = (named("case"), named("source"), named("hints")) else {
                panic!("{file}: a sequence without case, source or hints: {lines:?}");
            };
            let (hints, wanted) = run(&lines);
            if hints != wanted {
                wrong.push(format!("{file}: {case} ({source})\n  brought {hints:?}\n  wanted  {wanted:?}"));
            }
        }
    }
    assert!(count >= 40, "only {count} sequences");
    assert!(wrong.is_empty(), "{} of {count} sequences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_covers_every_flag() {
    let used = FILES.iter().flat_map(|(_, text)| sequences(text)).flatten().filter(|(key, _)| *key == "row");
    let used = used
        .fold(Flags::default(), |all, (_, value)| all.with(flags(value.split_once(' ').expect("flags and a path").0)));
    let missing: Vec<_> = Flags::NAMES.iter().filter(|(_, flag)| !used.any(*flag)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
