//! Tests of the rules as a whole: the table row by row, and what must hold for every path.

use platform::{Interest, Place, RelPath, RootId};
use proptest::prelude::*;

use super::set::{Parts, RuleSet};
use super::zone::{What, Zone};
use super::{Class, Mode, Rule, file};
use crate::git::ignore::{IgnoreFile, IgnoreSet};
use crate::git::index::Tracked;

const RULES: &[(Rule, &str)] = &[
    (
        Rule::Secrets,
        ".env .env.local .env.example.local deep/er/.env deep/.env.production .envrc .claude/.env .github/workflows/.env",
    ),
    (
        Rule::GitControl,
        ".git .git/config .git/hooks/post-checkout .git/hooks/sub/part .git/config.worktree .git/info/attributes \
         .git/info/exclude .git/commondir .git/modules/lib/config .git/modules/lib/hooks/post-merge \
         .git/modules/a/b/config lib/inner/.git lib/inner/.git/config lib/inner/.git/hooks/pre-commit \
         .git/worktrees/side/config.worktree",
    ),
    (
        Rule::CiConfig,
        ".github/workflows/new.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml \
         azure-pipelines.yml Jenkinsfile .buildkite/pipeline.yml bitbucket-pipelines.yml .github .github/workflows",
    ),
    (
        Rule::AgentConfig,
        ".claude/settings.json .codex/config.toml .agents/a.md .gemini/settings.json .cursor/mcp.json \
         .windsurf/rules.md .opencode/x.json .clinerules/r.md .mcp.json CLAUDE.md AGENTS.md GEMINI.md .cursorrules \
         pkg/a/.claude/deep/x pkg/AGENTS.md .claude",
    ),
    (
        Rule::EditorTasks,
        ".vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/extensions.json .idea/workspace.xml \
         .devcontainer/devcontainer.json pkg/.vscode/tasks.json",
    ),
    (
        Rule::HookManagers,
        ".husky/pre-commit .githooks/pre-push lefthook.yml .pre-commit-config.yaml .gitmodules pkg/.husky/_/x",
    ),
    (Rule::PackageRegistry, ".npmrc .yarnrc.yml .pypirc pip.conf .cargo/config.toml pkg/.cargo/config.toml"),
    (Rule::CageConfig, ".cage.yaml"),
];

/// Folders in which nothing free can be made.
const WHOLE: &str = ".git/hooks .git/hooks/sub .git/modules/lib/hooks lib/inner/.git/hooks .claude .claude/deep/er pkg/a/.claude \
    .github/workflows .github/actions/x .husky .husky/_ .idea tools/hooks";

/// Folders in which something free can be made.
const NOT_WHOLE: &str = ".git .git/info .git/modules .git/modules/lib .git/worktrees .git/worktrees/side .git/objects .git/refs/heads \
    lib/inner/.git .github .vscode .cargo src pkg node_modules/x/.claude tools docs docs/secret";

const FREE: &str = ".env.example .env.sample .env.template deep/.env.example app.env .environment \
    .vscode/notes.json .git/hooks/pre-push.sample .git/description .github/CODEOWNERS package.json \
    lib/Jenkinsfile.md .cage.yml docs/workflows/ci.yml pkg/.github/workflows/ci.yml pkg/Jenkinsfile pkg/.cage.yaml \
    .git/HEAD .git/index .git/refs/heads/config .git/.env .git/objects/ab/cd .cargo/registry config hooks/x claude/x";

const LOCKFILES: &str = "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb \
    Cargo.lock poetry.lock Pipfile.lock pdm.lock uv.lock go.sum Gemfile.lock composer.lock flake.lock mix.lock \
    pubspec.lock Package.resolved deno.lock";

const MANIFESTS: &str = "package.json Cargo.toml pyproject.toml requirements.txt requirements-dev.txt setup.py \
    setup.cfg Pipfile go.mod Gemfile sample.gemspec composer.json build.gradle build.gradle.kts pom.xml \
    Package.swift mix.exs pubspec.yaml deno.json";

fn place(path: &str) -> Place {
    Place::tree(RelPath::parse(path.as_bytes()).expect("a path"))
}

fn parts(rules: &str) -> Parts {
    let file = file::parse(rules.as_bytes()).expect("a rule file");
    let mut ignored = IgnoreSet::default();
    ignored.add(&RelPath::root(), IgnoreFile::parse(b"node_modules/\n*.log\n"));
    Parts { git: true, frozen: file.frozen, entries: file.entries, ignored, ..Parts::default() }
}

fn set(rules: &str) -> RuleSet {
    RuleSet::new(parts(rules))
}

fn restore(rule: Rule) -> Option<Class> {
    Some(Class { rule, mode: Mode::Restore })
}

#[test]
fn every_rule_covers_its_paths() {
    let rules = set("");
    for (rule, paths) in RULES {
        for path in paths.split_whitespace() {
            assert_eq!(rules.classify(&place(path)), restore(*rule), "{path}");
        }
    }
}

#[test]
fn paths_outside_the_table_are_free() {
    let rules = set("");
    for path in FREE.split_whitespace() {
        assert_eq!(rules.classify(&place(path)), None, "{path}");
    }
}

#[test]
fn lockfiles_are_reported_and_dependencies_can_be_frozen() {
    let (loose, frozen) = (set(""), set("dependencies: revert\n"));
    for name in LOCKFILES.split_whitespace() {
        for path in [name.to_owned(), format!("pkg/{name}")] {
            let reported = Some(Class { rule: Rule::Lockfile, mode: Mode::Report });
            assert_eq!(loose.classify(&place(&path)), reported, "{path}");
            assert_eq!(frozen.classify(&place(&path)), restore(Rule::Lockfile), "{path}");
        }
    }
    for name in MANIFESTS.split_whitespace() {
        assert_eq!(loose.classify(&place(name)), None, "{name}");
        assert_eq!(frozen.classify(&place(&format!("pkg/{name}"))), restore(Rule::DependencyManifest), "{name}");
    }
}

#[test]
fn without_git_there_is_no_git_control() {
    let rules = RuleSet::new(Parts::default());
    assert_eq!(rules.classify(&place(".git/config")), None);
    assert_eq!(rules.classify(&place(".env")), restore(Rule::Secrets));
}

#[test]
fn a_directory_is_expected_where_a_folder_belongs() {
    let rules = set("protect:\n  - path: infra\n");
    for path in [".git", ".claude", ".claude/agents", ".github", ".git/hooks", ".git/hooks/sub", "infra", "infra/a"] {
        assert!(rules.may_be_directory(&place(path)), "{path}");
    }
    for path in [".env", ".claude/.env", "CLAUDE.md", ".git/config", ".cage.yaml", ".vscode/tasks.json"] {
        assert!(!rules.may_be_directory(&place(path)), "{path}");
    }
}

#[test]
fn ignored_dependency_folders_are_left_alone() {
    let rules = set("protect:\n  - path: node_modules/pinned/.env\n  - glob: '**/*.pem'\n");
    assert_eq!(rules.classify(&place("node_modules/other/.env")), None);
    assert_eq!(rules.classify(&place("node_modules/other/key.pem")), None);
    assert_eq!(rules.classify(&place("a/node_modules/other/.git/config")), None);
    assert_eq!(rules.classify(&place("node_modules/pinned/.env")), restore(Rule::CageProtect));
    assert_eq!(rules.classify(&place("vendor/lib/.env")), restore(Rule::Secrets));
    for (dir, entered) in
        [("node_modules", true), ("node_modules/pinned", true), ("node_modules/other", false), ("vendor/lib", true)]
    {
        let dir = RelPath::parse(dir.as_bytes()).expect("a path");
        assert_eq!(rules.enters(RootId::default(), &dir), entered, "{dir:?}");
    }
}

#[test]
fn entries_of_the_file_protect_in_their_mode() {
    let rules =
        set("protect:\n  - path: infra\n  - glob: '**/*.{pem,key}'\n    mode: revert\n  - path: notes.txt\n    \
                     mode: report\n  - glob: 'conf/[ab]?.ini'\n  - glob: '.env'\n    mode: report\n");
    for path in ["infra", "infra/prod.tf", "infra/deep/more.tf", "keys/one.pem", "other/two.key", "conf/a1.ini"] {
        assert_eq!(rules.classify(&place(path)), restore(Rule::CageProtect), "{path}");
    }
    let reported = Some(Class { rule: Rule::CageProtect, mode: Mode::Report });
    assert_eq!(rules.classify(&place("notes.txt")), reported);
    assert_eq!(rules.classify(&place(".env")), restore(Rule::Secrets));
    for path in ["conf/c1.ini", "conf/a1/b.ini", "conf/a12.ini", "KEYS/ONE.PEM", "infrared/x"] {
        assert_eq!(rules.classify(&place(path)), None, "{path}");
    }
}

#[test]
fn the_file_gives_a_default_mode_for_its_own_entries() {
    let rules = set("mode: report\nprotect:\n  - path: notes.txt\n  - path: plan.txt\n    mode: revert\n");
    assert_eq!(rules.classify(&place("notes.txt")).map(|class| class.mode), Some(Mode::Report));
    assert_eq!(rules.classify(&place("plan.txt")).map(|class| class.mode), Some(Mode::Restore));
    assert_eq!(rules.classify(&place(".env")), restore(Rule::Secrets));
}

#[test]
fn scope_covers_what_git_would_track_outside() {
    let mut parts = parts("");
    let tracked = Tracked::from_sorted([&b"forced.log"[..], b"node_modules/a/forced.js", b"src/app.py"]);
    let allowed = vec![super::glob::Glob::compile("src/**").expect("a glob")];
    parts.scope = Some(super::Scope { allowed, tracked });
    let rules = RuleSet::new(parts);
    for path in ["notes.txt", "forced.log", "doc/new.md", "yarn.lock", "node_modules/a/forced.js"] {
        assert_eq!(rules.classify(&place(path)), restore(Rule::OutOfScope), "{path}");
    }
    for path in ["src/new.py", "build.log", "node_modules/a/b.js", ".git/HEAD"] {
        assert_eq!(rules.classify(&place(path)), None, "{path}");
    }
    assert_eq!(rules.classify(&place(".env")), restore(Rule::Secrets));
    assert!(rules.enters(RootId::default(), &RelPath::parse(b"node_modules/a").expect("a path")));
}

#[test]
fn zones_cover_hooks_in_unusual_places() {
    let zone = |path: &str, what| Zone { path: RelPath::parse(path.as_bytes()).expect("a path"), what };
    let external = super::ExternalRoot { path: "/srv".into(), zones: vec![zone("repo/.git", What::GitDir)] };
    let zones = vec![zone("tools/hooks", What::Hooks), zone("", What::HookNames), zone("my.gitconfig", What::Included)];
    let rules = RuleSet::new(Parts { zones, external: vec![external], ..parts("") });
    for path in ["tools/hooks/pre-push", "tools/hooks/a/b", "tools", "pre-commit", "my.gitconfig"] {
        assert_eq!(rules.classify(&place(path)), restore(Rule::GitControl), "{path}");
    }
    for path in ["tools/other", "tools/hooks/x.sample", "a/pre-commit", "toolshed"] {
        assert_eq!(rules.classify(&place(path)), None, "{path}");
    }
    let outside = |path: &str| Place { root: RootId(1), ..place(path) };
    for path in ["repo/.git/config", "repo/.git/hooks/post-commit", "repo/.git", "repo", "repo/.git/commondir"] {
        assert_eq!(rules.classify(&outside(path)), restore(Rule::GitControl), "{path}");
    }
    for path in ["repo/.env", ".env", "repo/.git/HEAD", "other/.git/config"] {
        assert_eq!(rules.classify(&outside(path)), None, "{path}");
    }
    assert!(!rules.enters(RootId(1), &RelPath::parse(b"repo/src").expect("a path")));
    assert_eq!(rules.classify(&Place { root: RootId(9), ..place(".env") }), None);
}

/// Paths in which rules could lie, and others.
fn any_path() -> impl Strategy<Value = RelPath> {
    let part = prop_oneof![
        proptest::sample::select(vec![
            ".git",
            "hooks",
            "config",
            "modules",
            "info",
            "exclude",
            ".env",
            ".env.x",
            ".github",
            "workflows",
            ".claude",
            "node_modules",
            "vendor",
            "a",
            "pinned",
            "infra",
            "x.pem",
            "yarn.lock",
            ".vscode",
            "tasks.json",
            "refs",
            "heads",
            "worktrees",
            "objects",
            "tools",
            "pre-commit",
            "target",
            "forced.log",
            "src",
        ])
        .prop_map(|part| part.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..6),
    ];
    proptest::collection::vec(part, 1..6)
        .prop_filter_map("no normal path", |parts| RelPath::parse(&parts.join(&b'/')).ok())
}

fn varied() -> RuleSet {
    let mut parts =
        parts("protect:\n  - path: node_modules/pinned\n  - path: infra/a\n    mode: report\n  - glob: '**/*.pem'\n");
    parts.zones = vec![Zone { path: RelPath::parse(b"tools/hooks").expect("a path"), what: What::Hooks }];
    let tracked = Tracked::from_sorted([&b"forced.log"[..], b"node_modules/a/forced.log", b"src/a"]);
    let allowed = vec![super::glob::Glob::compile("src/**").expect("a glob")];
    parts.scope = Some(super::Scope { allowed, tracked });
    RuleSet::new(parts)
}

proptest! {
    #[test]
    fn what_is_classified_is_covered_and_its_directories_are_entered(path in any_path(), scoped in any::<bool>()) {
        let rules = if scoped { varied() } else { set("protect:\n  - path: node_modules/pinned\n") };
        let place = Place::tree(path.clone());
        if rules.classify(&place).is_some() {
            let dir = path.parent().expect("not the root");
            prop_assert!(rules.covers(RootId::default(), &dir, path.name().expect("not the root")));
            for above in path.ancestors() {
                prop_assert!(rules.enters(RootId::default(), &above), "{above:?} is not entered");
            }
        }
    }

    #[test]
    fn no_rule_weakens_another(path in any_path()) {
        let place = Place::tree(path);
        if let Some(class) = set("").classify(&place) {
            let with = varied().classify(&place).expect("still covered");
            prop_assert!(with.mode >= class.mode);
        }
    }
}

#[test]
fn the_documented_table_is_the_one_in_the_code() {
    let page = include_str!("../../docs/rules.md");
    for row in super::builtin::TABLE {
        let line =
            page.lines().find(|line| line.starts_with(&format!("| `{}` |", row.rule))).expect("a row of the page");
        for pattern in row.patterns.split(' ').chain(row.except.split(' ')).filter(|pattern| !pattern.is_empty()) {
            assert!(line.contains(&format!("`{pattern}`")), "{pattern} is missing under {}", row.rule);
        }
    }
    for rule in Rule::ALL {
        assert!(page.contains(&format!("| `{rule}` |")), "{rule} is missing");
    }
}

#[test]
fn places_where_rules_live_come_first() {
    let rules = set("protect:\n  - path: deep/down/file\n");
    let first = |dir: &str| rules.first(RootId::default(), &RelPath::parse(dir.as_bytes()).expect("a path"));
    for dir in
        ["", ".git", ".git/hooks", ".git/info", ".github", ".github/workflows", ".claude/agents", ".vscode", "deep"]
    {
        assert!(first(dir), "{dir}");
    }
    for dir in ["src", ".git/objects", ".git/modules/lib", ".venv", "node_modules", "pkg/.claude", ".cache"] {
        assert!(!first(dir), "{dir}");
    }
}

#[test]
fn folders_in_which_nothing_free_can_be_made_are_known() {
    let mut parts =
        parts("protect:\n  - path: docs/whole\n  - glob: docs/secret/**\n  - { path: notes, mode: report }\n");
    parts.zones.push(Zone { path: RelPath::parse(b"tools/hooks").expect("a path"), what: What::Hooks });
    let rules = RuleSet::new(parts);
    for path in WHOLE.split_whitespace().chain(["docs/whole", "docs/whole/deep"]) {
        assert!(rules.covers_whole(&place(path)), "{path}");
        assert!(rules.classify(&place(&format!("{path}/anything"))).is_some(), "{path}");
    }
    for path in NOT_WHOLE.split_whitespace().chain(["notes", "docs/whole/.git", "docs/whole/.git/objects"]) {
        assert!(!rules.covers_whole(&place(path)), "{path}");
    }
    assert!(!rules.covers_whole(&Place::tree(RelPath::root())));
}

#[test]
fn without_git_hooks_are_an_ordinary_folder() {
    assert!(!RuleSet::new(Parts::default()).covers_whole(&place(".git/hooks")));
}
