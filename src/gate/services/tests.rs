//! The services as a loop sees them.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::gate::tools::Tool;

struct Lab {
    temp: tempfile::TempDir,
    services: Services,
    wall: SystemTime,
    now: Moment,
}

impl Lab {
    fn new() -> Self {
        Self::with(true, false)
    }

    fn with(fires: bool, keeps_wakes: bool) -> Self {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let services = open(&temp, fires, keeps_wakes);
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_031_667);
        Self { temp, services, wall, now: Moment::from_nanos(7) }
    }

    fn call(&mut self, tool: Tool, arguments: Value) -> Result<Value, String> {
        self.call_of(1, tool, arguments)
    }

    fn call_of(&mut self, connection: u64, tool: Tool, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = Request::parse(tool, arguments).expect("is served").expect("arguments");
        self.services.run(&request, connection, self.wall, self.now).map(Value::Object)
    }

    fn pass(&mut self, seconds: u64) -> Vec<Due> {
        self.wall += Duration::from_secs(seconds);
        self.now = self.now + Duration::from_secs(seconds);
        self.services.due(self.wall, self.now)
    }

    fn waits(&self) -> Option<Duration> {
        self.services.wake_at(self.wall, self.now).map(|at| at.duration_since(self.wall).unwrap_or_default())
    }
}

fn open(temp: &tempfile::TempDir, fires: bool, keeps_wakes: bool) -> Services {
    let dir = Dir::open_ambient(temp.path()).expect("it exists");
    Services::open(&dir, Settings { fires, keeps_wakes, zone: Zone::Utc }).expect("opens")
}

fn notification(title: &str, message: &str) -> Due {
    Due::Notify { title: title.to_owned(), message: message.to_owned() }
}

#[test]
fn a_notification_is_handed_out_once_escaped_and_ten_times_a_minute() {
    let mut lab = Lab::new();
    assert_eq!(lab.call(Tool::Notify, json!({"message": "a\nb", "title": "keep gate"})), Ok(json!({"sent": true})));
    assert_eq!(lab.waits(), Some(Duration::ZERO));
    assert_eq!(lab.pass(0), [notification("An agent says: keep gate", "a\\nb")]);
    assert_eq!((lab.pass(0), lab.waits()), (vec![], None));
    for _ in 1..10 {
        lab.call(Tool::Notify, json!({"message": "x"})).expect("sent");
    }
    let refused = lab.call_of(2, Tool::Notify, json!({"message": "one too many"}));
    assert_eq!(refused, Err("at most 10 notifications a minute; try again in 60 s".to_owned()));
    assert_eq!(lab.pass(60).len(), 9);
    lab.call(Tool::Notify, json!({"message": "x"})).expect("sent");
    for bad in [
        json!({"message": ""}),
        json!({"message": "x".repeat(1001)}),
        json!({"message": "x", "title": "y".repeat(101)}),
    ] {
        assert!(lab.call(Tool::Notify, bad).is_err());
    }
}

#[test]
fn a_reminder_is_listed_survives_and_is_told_when_it_is_due() {
    let mut lab = Lab::new();
    let added = lab.call(Tool::Remind, json!({"when": "in 1h", "message": "oven\n", "title": "look"})).expect("added");
    assert_eq!(added["fireAt"], json!("2026-11-30T10:41:07.000Z"));
    assert_eq!(lab.waits(), Some(Duration::from_secs(3600)));
    let past = lab.call(Tool::Remind, json!({"when": "2001-02-03T04:05:06Z", "message": "past"})).expect("added");
    assert_eq!(lab.waits(), Some(Duration::ZERO));
    assert_eq!(lab.pass(0), [notification("Reminder from an agent", "past")]);
    assert_eq!(
        lab.call(Tool::RemindCancel, json!({"id": past["id"]})),
        Ok(json!({"id": past["id"], "cancelled": false}))
    );
    lab.services = open(&lab.temp, true, false);
    let listed =
        json!({"reminders": [{"id": added["id"], "fireAt": added["fireAt"], "message": "oven\n", "title": "look"}]});
    assert_eq!(lab.call(Tool::RemindList, json!({})), Ok(listed));
    assert_eq!(lab.pass(3599), []);
    assert_eq!(lab.pass(1), [notification("Reminder from an agent: look", "oven")]);
    assert_eq!(lab.call(Tool::RemindList, json!({})), Ok(json!({"reminders": []})));
    assert!(
        lab.call(Tool::Remind, json!({"when": "in 0s", "message": "x"})).is_err_and(|why| why.contains("positive"))
    );
}

#[test]
fn who_does_not_hold_the_gate_stores_reminders_and_tells_none() {
    let mut lab = Lab::with(false, false);
    lab.call(Tool::Remind, json!({"when": "in 1s", "message": "x"})).expect("added");
    assert_eq!((lab.waits(), lab.pass(5)), (None, vec![]));
    lab.services = open(&lab.temp, true, false);
    assert_eq!(lab.pass(0).len(), 1, "the gate does, at its start");
}

#[test]
fn a_fault_of_the_reminders_is_a_line_and_the_rest_goes_on() {
    let mut lab = Lab::new();
    std::fs::write(lab.temp.path().join("reminders.json"), "[\u{1b}").expect("written");
    lab.call(Tool::Wake, json!({"seconds": 1, "note": "n"})).expect("waits");
    let due = lab.pass(1);
    assert!(matches!(&due[0], Due::Fault(line) if !line.chars().any(crate::text::is_hidden)), "{due:?}");
    assert_eq!(due[1], Due::Wake { connection: 1, note: "n".to_owned() });
    assert_eq!(lab.pass(100), []);
}

#[test]
fn a_wake_goes_to_its_client_by_time_that_nobody_sets() {
    let mut lab = Lab::new();
    assert_eq!(lab.call_of(7, Tool::Wake, json!({"seconds": 90.5, "note": "n"})), Ok(json!({"wakeInSeconds": 91})));
    lab.wall += Duration::from_secs(86_400);
    assert_eq!(lab.waits(), Some(Duration::from_secs(91)));
    assert_eq!(lab.pass(90), []);
    assert_eq!(lab.pass(1), [Due::Wake { connection: 7, note: "n".to_owned() }]);
}

#[test]
fn a_client_that_is_gone_is_woken_only_by_a_program() {
    for keeps_wakes in [false, true] {
        let mut lab = Lab::with(true, keeps_wakes);
        for _ in 0..3 {
            lab.call_of(7, Tool::Wake, json!({"seconds": 5, "note": "n"})).expect("waits");
        }
        lab.services.gone(7);
        assert_eq!(lab.call_of(8, Tool::Wake, json!({"seconds": 5, "note": "n"})).is_err(), keeps_wakes);
        assert_eq!(lab.pass(5).len(), if keeps_wakes { 3 } else { 1 });
    }
}

#[test]
fn notes_skills_and_the_time_are_there() {
    let mut lab = Lab::new();
    lab.call(Tool::MemoryWrite, json!({"path": "a.md", "summary": "s", "content": "c"})).expect("written");
    assert_eq!(lab.call(Tool::MemoryRead, json!({"path": "a.md"})).expect("read")["content"], json!("c"));
    assert!(lab.call(Tool::SkillLoad, json!({"name": "x"})).is_err());
    assert!(lab.call(Tool::SkillRead, json!({"name": "x", "path": "y"})).is_err());
    assert_eq!(lab.call(Tool::TimeNow, json!({})).expect("the time")["unix"], json!(1_796_031_667));
    assert!(lab.call(Tool::FileStat, json!({"path": "a"})).is_err());
}
