//! How long the rules take for one name: `cargo run --release --example rule_cost`.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it times and prints")]

use std::hint::black_box;
use std::time::Instant;

use keepwatch::rules::{Flags, assemble, file};
use platform::{Interest, RelPath, RootId};

const NAMES: &[(&str, &str)] = &[
    ("src/watch", "machine.rs"),
    ("crates/deep/er/and/deeper/src/parser/tests", "snapshot_12.txt"),
    ("", "README.md"),
    (".git/objects/ab", "cdef0123456789abcdef0123456789abcdef01"),
    ("web/app/components/button", "index.tsx"),
    ("target/debug/incremental/keepwatch-1x2y3z/s-abc-def", "query-cache.bin"),
    ("docs", "rules.md"),
    ("a/b/c/d/e/f/g/h", "x"),
];

fn main() {
    let rounds: u128 = 1_000_000;
    for (label, text) in
        [("built-in rules", ""), ("with two entries", "protect:\n  - path: infra\n  - glob: '**/*.{pem,key}'\n")]
    {
        let rules = assemble(file::parse(text.as_bytes()).expect("valid"), Flags::default(), None).set;
        for (dir, name) in NAMES {
            let dir = RelPath::parse(dir.as_bytes()).expect("a path");
            let start = Instant::now();
            let covered =
                (0..rounds).filter(|_| rules.covers(RootId::default(), black_box(&dir), black_box(name.as_bytes())));
            let covered = covered.count();
            let nanos = start.elapsed().as_nanos() / rounds;
            println!("{label}: {nanos:>4} ns  {dir:?}/{name} ({})", if covered == 0 { "free" } else { "covered" });
        }
    }
}
