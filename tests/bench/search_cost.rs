//! How long `file_search` takes: `cargo run --release --example search_cost -- FOLDER PATTERN [TEXT]`.
//!
//! To be held against `rg --no-require-git --hidden --count-matches TEXT FOLDER` with the same threads and a warm cache.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it times and prints")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keepwatch::gate::files::{Answer, Files, Job};
use keepwatch::gate::tools::request::FileSearch;
use platform::Root;

const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, pattern, rest @ ..] = &arguments[..] else { return println!("FOLDER PATTERN [TEXT]") };
    let root = Root::open(Path::new(folder)).expect("a folder");
    let mut files = Files::new(Arc::new(root));
    let request =
        FileSearch { pattern: pattern.clone(), path: None, contains: rest.first().cloned(), regex: false, all: false };
    let mut times: Vec<Duration> = Vec::new();
    let mut hits = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let answer = files.run(Job::Search(request.clone()));
        times.push(start.elapsed());
        let Answer::Done(answer) = answer else { return println!("{answer:?}") };
        hits = answer.values().filter_map(|value| value.as_array().map(Vec::len)).sum();
    }
    times.sort();
    println!("{hits} hits, median {:?}, best {:?}", times[ROUNDS / 2], times[0]);
}
