//! The kernel's limit on marks, set low in a user namespace of our own so that nobody else notices.

use std::process::Command;

use platform::{Hint, LostCause};

use super::fixture::{Fixture, PRIVILEGED, place};
use super::machine;

const BACKEND: &str = "KEEP_LIMITED_BACKEND";

#[test]
fn a_limit_on_marks_is_said_once_and_the_rest_goes_on() {
    for backend in machine::backends().into_iter().filter(|backend| !matches!(*backend, PRIVILEGED | "poll")) {
        let limit = if backend == "fanotify" { "max_fanotify_marks" } else { "max_inotify_watches" };
        let set = format!("echo 30 > /proc/sys/user/{limit}");
        let in_namespace = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "sh", "-c", script]).arg("sh");
            command
        };
        if !machine::present("userns", machine::run(&mut in_namespace(&set))) {
            return;
        }
        let output = in_namespace(&format!("{set} && exec \"$@\""))
            .arg(std::env::current_exe().expect("this program"))
            .args(["--nocapture", "--ignored", "--exact", "events::limits::inside_a_low_limit"])
            .env(BACKEND, backend)
            // In there is less than outside.
            .env_remove("KEEP_EXPECT")
            .output()
            .expect("unshare");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
#[ignore = "run by a_limit_on_marks_is_said_once_and_the_rest_goes_on, where the limit is low"]
fn inside_a_low_limit() {
    let Ok(backend) = std::env::var(BACKEND) else { return };
    let backend = machine::backends().into_iter().find(|name| *name == backend).expect("it was there outside");
    let fixture = Fixture::new(backend, &std::env::temp_dir());
    fixture.write("known/deep/config", "x");
    for index in 0..100 {
        fixture.write(&format!("d{index}/.env"), "x");
    }
    let mut watch = fixture.watch_from(&["known/deep/config"]);
    let hints = watch.walk();
    let losses: Vec<_> = hints.iter().filter(|hint| matches!(hint, Hint::Lost(_))).collect();
    assert!(matches!(losses[..], [Hint::Lost(LostCause::Limit(_))]), "{losses:?}");
    assert_eq!(hints.iter().filter(|hint| matches!(hint, Hint::Found(_))).count(), 101, "the sweep must know of all");
    fixture.write("known/deep/config", "y");
    watch.told("known/deep/config");
    fixture.write("known/.env", "y");
    watch.until(
        "a new file in a marked directory",
        |hint| matches!(hint, Hint::Touched { place: found, .. } if *found == place(b"known/.env")),
    );
}
