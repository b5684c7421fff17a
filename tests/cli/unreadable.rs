//! What cannot be read at the start: named, not guarded, and taken for the person's own only if it is still that.

use std::fs;
use std::io::Write as _;

use crate::support::{Content, Sandbox, Watch, fresh, goes_on_as_an_ordinary_user, sha, until};

/// Waits until what was made is older than a watch that starts then, by the kernel's clock, too.
fn let_it_grow_older() {
    let made = std::time::Instant::now();
    until("it is older than the start", || made.elapsed().as_millis() > 100);
}

#[test]
fn a_protected_file_nobody_may_read_is_named_and_the_rest_is_guarded() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write(".env.locked", b"A=1\n");
    lab.chmod(".env.locked", 0o000);
    let mut watch = lab.watch(&[]);
    assert!(watch.has_said(".env.locked is not guarded"), "{}", watch.text());
    let content = fresh();
    lab.write(".env", &content);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    watch.rejects(".env");
    lab.chmod(".env.locked", 0o600);
    watch.says("keep watch: .env.locked can be read now and is guarded from here on");
    lab.write(".env.locked", b"A=2\n");
    watch.asks(".env.locked", "secrets", "modified", &sha(b"A=2\n"));
    watch.stop().came_to(3, &[".env rejected", ".env.locked restored_at_exit"]);
}

#[test]
fn a_folder_nobody_may_read_is_named_and_guarded_once_it_can_be_read() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write("closed/.env", b"A=mine\n");
    let_it_grow_older();
    lab.chmod("closed", 0o000);
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    watch.shows("keep watch: closed cannot be read; what lies in it is not guarded");
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    lab.chmod("closed", 0o755);
    watch.says("keep watch: closed/.env can be read now and is guarded from here on");
    lab.write("closed/.env.new", b"A=1\n");
    watch.asks("closed/.env.new", "secrets", "added", &sha(b"A=1\n"));
    watch.rejects("closed/.env.new");
    lab.write("closed/.env", b"A=other\n");
    watch.asks("closed/.env", "secrets", "modified", &sha(b"A=other\n"));
    watch.killed();
    let ended = lab.watch(&[]).stop();
    assert_eq!(lab.content("closed/.env"), Content::File(0o644, b"A=mine\n".to_vec()), "{}", ended.text);
}

#[test]
fn what_lies_in_a_folder_nobody_may_read_is_not_taken_away_at_the_end() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write("closed/.env", b"A=mine\n");
    lab.chmod("closed", 0o000);
    // Killed, so that the folder is met by recovery as well.
    lab.watch(&[]).killed();
    lab.chmod("closed", 0o755);
    let recovered = lab.watch(&[]).stop();
    recovered.came_to(0, &[]);
    lab.chmod("closed", 0o000);
    let watch = lab.watch(&["--backend", "poll", "--watch-interval-ms", "600000"]);
    lab.chmod("closed", 0o755);
    watch.stop().came_to(0, &[]);
    assert_eq!(lab.content("closed/.env"), Content::File(0o644, b"A=mine\n".to_vec()));
}

#[test]
fn an_unreadable_file_is_not_taken_away_by_the_recovery_after_a_kill() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write(".env.locked", b"A=1\n");
    lab.chmod(".env.locked", 0o000);
    lab.watch(&[]).killed();
    let ended = lab.watch(&[]).stop();
    assert!(lab.path(".env.locked").exists(), "it was there before the first start: {}", ended.text);
}

/// A watch of a repository with a `.env.locked` that cannot be read.
fn locked(lab: &Sandbox) -> Watch {
    lab.write(".env.locked", b"A=1\n");
    lab.chmod(".env.locked", 0o000);
    let watch = lab.watch(&["--decision-timeout", "300"]);
    assert!(watch.has_said(".env.locked is not guarded"), "{}", watch.text());
    watch
}

const NOTHING_TO_PUT_BACK: &str = "keep watch: .env.locked is not what could not be read at the start";

#[test]
fn a_file_in_the_place_of_an_unreadable_one_is_asked_about_and_can_only_be_taken_away() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    let mut watch = locked(&lab);
    let content = fresh();
    lab.save_by_rename(".env.locked", &content);
    watch.says(NOTHING_TO_PUT_BACK);
    watch.asks(".env.locked", "secrets", "modified", &sha(&content));
    watch.answers(b"r", "keep watch: .env.locked taken away (rejected)");
    assert_eq!(lab.content(".env.locked"), Content::Absent);
    assert!(lab.quarantined().contains(&content));
    // From here on nothing is accepted there.
    lab.write(".env.locked", &content);
    watch.asks(".env.locked", "secrets", "added", &sha(&content));
    watch.killed();
    let ended = lab.watch(&[]).stop();
    assert_eq!(lab.content(".env.locked"), Content::Absent, "{}", ended.text);
}

#[test]
fn a_file_in_the_place_of_an_unreadable_one_is_guarded_once_it_is_accepted() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    let mut watch = locked(&lab);
    let content = fresh();
    lab.save_by_rename(".env.locked", &content);
    watch.asks(".env.locked", "secrets", "modified", &sha(&content));
    watch.accepts(".env.locked");
    lab.write(".env.locked", b"A=evil\n");
    watch.asks(".env.locked", "secrets", "modified", &sha(b"A=evil\n"));
    watch.rejects(".env.locked");
    lab.becomes(".env.locked", &Content::File(0o644, content));
    watch.stop().came_to(3, &[".env.locked accepted", ".env.locked rejected"]);
}

#[test]
fn an_unreadable_file_in_the_place_of_another_is_asked_about_at_once() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    let mut watch = locked(&lab);
    let beside = lab.base.join("beside");
    fs::write(&beside, b"EVIL=1\n").expect("writes");
    fs::set_permissions(&beside, std::os::unix::fs::PermissionsExt::from_mode(0o000)).expect("chmods");
    fs::rename(beside, lab.path(".env.locked")).expect("renames");
    watch.asks(".env.locked", "secrets", "modified", "7 bytes, not read");
    watch.answers(b"a", "keep watch: .env.locked cannot be kept: ");
    watch.answers(b"r", "keep watch: .env.locked taken away (rejected)");
    watch.stop().came_to(3, &[".env.locked rejected"]);
    assert!(!lab.path(".env.locked").exists());
}

#[test]
fn an_unreadable_file_that_was_written_to_is_asked_about_once_it_can_be_read() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write(".env.locked", b"A=1\n");
    let mut held = fs::File::options().write(true).open(lab.path(".env.locked")).expect("opens");
    let mut watch = locked(&lab);
    // Just as long as before.
    held.write_all(b"B=2\n").expect("writes");
    drop(held);
    watch.says("keep watch: .env.locked may have been changed; it still cannot be read, so it is not guarded");
    lab.chmod(".env.locked", 0o600);
    watch.says(NOTHING_TO_PUT_BACK);
    watch.asks(".env.locked", "secrets", "modified", &sha(b"B=2\n"));
    let ended = watch.stop();
    ended.came_to(3, &[".env.locked restored_at_exit"]);
    assert!(ended.text.contains("keep watch: .env.locked taken away (the watch ended)"), "{}", ended.text);
    assert!(lab.quarantined().contains(&b"B=2\n".to_vec()));
}

#[test]
fn the_unreadable_file_moved_away_and_back_is_still_the_persons() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    let mut watch = locked(&lab);
    fs::rename(lab.path(".env.locked"), lab.base.join("away")).expect("renames");
    watch.says("keep watch: .env.locked is gone");
    lab.write(".env.locked", b"A=evil\n");
    watch.asks(".env.locked", "secrets", "modified", &sha(b"A=evil\n"));
    fs::rename(lab.base.join("away"), lab.path(".env.locked")).expect("renames");
    lab.chmod(".env.locked", 0o600);
    watch.says("keep watch: .env.locked can be read now and is guarded from here on");
    watch.stop().came_to(0, &[]);
}

#[test]
fn what_was_prepared_elsewhere_and_put_into_a_closed_folder_is_asked_about() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    for swapped in [false, true] {
        let lab = Sandbox::new();
        lab.write("closed/README", b"old\n");
        let prepared = lab.base.join("prepared");
        fs::create_dir(&prepared).expect("makes");
        fs::write(prepared.join(".env"), b"EVIL=1\n").expect("writes");
        let_it_grow_older();
        lab.chmod("closed", 0o300);
        let mut watch = lab.watch(&["--decision-timeout", "300"]);
        watch.shows("keep watch: closed cannot be read; what lies in it is not guarded");
        let at = if swapped {
            // Another folder under the name of the closed one.
            fs::rename(lab.path("closed"), lab.base.join("away")).expect("renames");
            fs::rename(&prepared, lab.path("closed")).expect("renames");
            "closed/.env"
        } else {
            fs::rename(&prepared, lab.path("closed/inner")).expect("renames");
            lab.chmod("closed", 0o755);
            "closed/inner/.env"
        };
        watch.asks(at, "secrets", "added", &sha(b"EVIL=1\n"));
        watch.rejects(at);
        watch.stop().came_to(3, &[&format!("{at} rejected")]);
    }
}

#[test]
fn what_was_added_to_a_folder_while_it_was_closed_is_asked_about() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write("closed/.env", b"A=mine\n");
    let_it_grow_older();
    // It can be written to and entered, and not listed.
    lab.chmod("closed", 0o300);
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    watch.shows("keep watch: closed cannot be read; what lies in it is not guarded");
    lab.write("closed/.env.new", b"EVIL=1\n");
    lab.chmod("closed", 0o755);
    watch.shows("keep watch: closed/.env can be read now and is guarded from here on");
    watch.asks("closed/.env.new", "secrets", "added", &sha(b"EVIL=1\n"));
    watch.rejects("closed/.env.new");
    watch.stop().came_to(3, &["closed/.env.new rejected"]);
}

#[test]
fn what_cannot_be_read_in_a_folder_that_was_opened_is_named() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write("closed/.env", b"A=mine\n");
    lab.chmod("closed/.env", 0o000);
    let_it_grow_older();
    lab.chmod("closed", 0o000);
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.chmod("closed", 0o755);
    watch.says("keep watch: closed/.env is not guarded: ");
    lab.chmod("closed/.env", 0o600);
    watch.says("keep watch: closed/.env can be read now and is guarded from here on");
    watch.stop().came_to(0, &[]);
}

#[test]
fn a_kill_does_not_make_what_came_in_the_place_of_an_unreadable_file_the_baseline() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write(".env.mine", b"A=mine\n");
    lab.chmod(".env.mine", 0o000);
    let mut watch = locked(&lab);
    let content = fresh();
    lab.save_by_rename(".env.locked", &content);
    watch.asks(".env.locked", "secrets", "modified", &sha(&content));
    watch.killed();
    // The one that was only opened is the person's.
    lab.chmod(".env.mine", 0o600);
    let mut second = lab.watch(&["--decision-timeout", "300"]);
    second.shows(NOTHING_TO_PUT_BACK);
    second.shows(&format!("keep watch: .env.locked changed (secrets, modified, {})", sha(&content)));
    second.killed();
    // It is not forgotten in the run after that either.
    let third = lab.watch(&["--decision-timeout", "300"]).stop();
    third.came_to(3, &[".env.locked restored_at_exit"]);
    assert_eq!(lab.content(".env.locked"), Content::Absent);
    assert_eq!(lab.content(".env.mine"), Content::File(0o600, b"A=mine\n".to_vec()));
}
