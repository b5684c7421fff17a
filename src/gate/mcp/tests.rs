//! A client on one end, a gate that a test plays on the other, and the server between them.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use platform::ManualClock;
use serde_json::{Map, Value, json};

use super::calls::MAX_CALLS;
use super::{Connector, LAST_CALLS, McpError, PROGRESS_EVERY, Settings, Streams, run};
use crate::gate::denial::Denial;
use crate::gate::frame::{self, FrameError};
use crate::gate::wire::{FromClient, FromGate, Outcome, ToolInfo, VERSION};

/// After which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Hands out the connections that the test has laid ready.
struct Ready {
    offered: blocking::Receiver<UnixStream>,
    last: Option<UnixStream>,
    better: Option<blocking::Receiver<()>>,
}

impl Connector for Ready {
    fn connect(&mut self) -> io::Result<Streams> {
        let stream = self.offered.try_recv().map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        self.last = Some(stream.try_clone()?);
        Ok((Box::new(stream.try_clone()?), Box::new(stream)))
    }

    fn knows_better(&mut self) -> bool {
        self.better.as_ref().is_some_and(|better| better.try_recv().is_ok())
    }

    fn hang_up(&mut self) {
        if let Some(last) = self.last.take() {
            // The other side may have done so.
            let _ = last.shutdown(Shutdown::Both);
        }
    }
}

/// The gate's side of a connection.
struct Gate(UnixStream);

impl Gate {
    fn hear(&mut self) -> FromClient {
        frame::read(&mut self.0).expect("a message for the gate")
    }

    fn say(&mut self, message: &FromGate) {
        frame::write(&mut self.0, message).expect("the client listens");
    }

    fn welcome(mut self, tools: &[&str]) -> Self {
        assert!(matches!(self.hear(), FromClient::Hello { version: VERSION, .. }));
        let tools = tools.iter().map(|name| tool(name)).collect();
        self.say(&FromGate::Welcome { version: VERSION, tools });
        self
    }

    fn call(&mut self) -> (u64, String, Map<String, Value>) {
        match self.hear() {
            FromClient::Call { id, tool, arguments } => (id, tool, arguments),
            other => panic!("a call, not {other:?}"),
        }
    }

    fn done(&mut self, id: u64, result: Value) {
        let Value::Object(result) = result else { panic!("an object") };
        self.say(&FromGate::Done { id, outcome: Outcome::Ok(result) });
    }

    fn is_closed(&mut self) -> bool {
        matches!(frame::read::<FromClient>(&mut self.0), Err(FrameError::Closed | FrameError::Read(_)))
    }
}

fn tool(name: &str) -> ToolInfo {
    let Value::Object(input_schema) = json!({"type": "object"}) else { panic!("an object") };
    ToolInfo {
        name: name.to_owned(),
        description: "does something".to_owned(),
        input_schema,
        read_only: false,
        destructive: false,
    }
}

/// The client's side, and the server's thread.
struct Client {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    notifications: Vec<Value>,
    gates: blocking::Sender<UnixStream>,
    clock: Arc<ManualClock>,
    server: Option<JoinHandle<Result<(), McpError>>>,
}

impl Client {
    fn start() -> Self {
        Self::with(PROGRESS_EVERY, None)
    }

    fn with(progress_every: Duration, better: Option<blocking::Receiver<()>>) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let (gates, offered) = blocking::channel();
        let clock = Arc::new(ManualClock::default());
        let connector = Box::new(Ready { offered, last: None, better });
        let input = Box::new(theirs.try_clone().expect("a second handle"));
        let settings = Settings { unattended: false, progress_every };
        let time = Arc::clone(&clock);
        let server = thread::spawn(move || run(input, Box::new(theirs), connector, time, settings));
        let lines = BufReader::new(ours.try_clone().expect("a second handle"));
        Self { stream: ours, lines, notifications: vec![], gates, clock, server: Some(server) }
    }

    /// Lays a connection to a gate ready, and returns the gate's side of it.
    fn gate(&self) -> Gate {
        let (gate, far) = UnixStream::pair().expect("a pair of sockets");
        gate.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        self.gates.send(far).expect("the server runs");
        Gate(gate)
    }

    /// With a client's opening, and the gate that answers it.
    fn opened(self, tools: &[&str]) -> (Self, Gate) {
        let mut gate = self.gate();
        let mut client = self;
        client.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}}));
        gate = gate.welcome(tools);
        assert_eq!(client.reply(&json!("hello"))["result"]["protocolVersion"], json!("2025-06-18"));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(gate.hear(), FromClient::Name { name: "a test".to_owned() });
        (client, gate)
    }

    fn raw(&mut self, line: &str) {
        self.stream.write_all(line.as_bytes()).expect("the server reads");
        self.stream.write_all(b"\n").expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        self.raw(&message.to_string());
    }

    fn call(&mut self, id: i64, arguments: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "file_write", "arguments": arguments}}));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the server says something");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The reply to a request; notifications before it are kept.
    fn reply(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next();
            if message.get("method").is_some() {
                self.notifications.push(message);
            } else {
                assert_eq!(&message["id"], id, "{message}");
                return message;
            }
        }
    }

    fn notification(&mut self) -> Value {
        let message = self.next();
        assert!(message.get("method").is_some() && message.get("id").is_none(), "{message}");
        message
    }

    /// The text of a call's result, and whether it is an error.
    fn result(&mut self, id: i64) -> (String, bool) {
        let reply = self.reply(&json!(id));
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a result: {reply}"));
        (text.to_owned(), reply["result"]["isError"] == json!(true))
    }

    fn ends(&mut self) {
        let server = self.server.take().expect("runs");
        server.join().expect("does not panic").expect("serves to the end");
    }
}

#[test]
fn a_client_hears_of_the_gates_tools_and_a_call_brings_what_the_gate_says() {
    let (mut client, mut gate) = Client::start().opened(&["file_read", "file_write"]);
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let list = client.reply(&json!(1));
    let names: Vec<&Value> =
        list["result"]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["file_read", "file_write"]);
    assert!(list["result"].get("resultType").is_none(), "only later revisions have it: {list}");

    client.call(2, json!({"path": "a", "content": "\u{0}\u{2028}\n"}));
    let (id, tool, arguments) = gate.call();
    assert_eq!((tool.as_str(), json!(arguments)), ("file_write", json!({"path": "a", "content": "\u{0}\u{2028}\n"})));
    gate.done(id, json!({"path": "a", "bytesWritten": 5}));
    let reply = client.reply(&json!(2));
    assert_eq!(reply["result"]["structuredContent"], json!({"path": "a", "bytesWritten": 5}));

    client.call(3, json!({}));
    let (id, ..) = gate.call();
    let outcome = Outcome::Denied { action: "file a".into(), denial: Denial::Declined };
    gate.say(&FromGate::Done { id, outcome });
    assert_eq!(client.result(3), ("denied (declined): file a: the person said no".to_owned(), true));

    client.call(4, json!({}));
    let (id, ..) = gate.call();
    gate.say(&FromGate::Done { id, outcome: Outcome::UnknownTool });
    assert_eq!(client.reply(&json!(4))["error"], json!({"code": -32602, "message": "unknown tool: file_write"}));
}

#[test]
fn nonsense_before_and_after_the_opening_ends_nothing() {
    let mut client = Client::start();
    client.raw("no JSON");
    client.raw(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    client.raw(r#"{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}"#);
    client.raw(r#"{"jsonrpc": "2.0", "id": 2, "method": "ping"}"#);
    assert_eq!(client.next()["error"]["code"], json!(-32700));
    assert_eq!(client.next()["error"]["code"], json!(-32601));
    assert_eq!(client.next(), json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let (mut client, mut gate) = client.opened(&["file_write"]);
    client.raw(r#"{"jsonrpc": "2.0", "id": 9001, "method": "tools/call", "params": {"name": "a", "arguments": []}}"#);
    assert_eq!(client.reply(&json!(9001))["error"]["code"], json!(-32602));
    client.raw(r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 777}}"#);
    client.raw(r#"{"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "x"}}"#);
    assert_eq!(client.reply(&json!(3))["error"]["code"], json!(-32602));
    client.call(4, json!({}));
    let (id, ..) = gate.call();
    gate.done(id, json!({}));
    assert_eq!(client.result(4), ("{}".to_owned(), false));
}

#[test]
fn a_client_that_does_not_introduce_itself_is_served_all_the_same() {
    let mut client = Client::start();
    let gate = client.gate();
    client.call(1, json!({}));
    let mut gate = gate.welcome(&["file_write"]);
    let (id, ..) = gate.call();
    gate.done(id, json!({}));
    assert_eq!(client.result(1), ("{}".to_owned(), false));
}

#[test]
fn a_withdrawn_call_is_told_to_the_gate_with_whether_it_timed_out_and_gets_no_reply() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    for (request, reason, timed_out) in
        [(1, "McpError: MCP error -32001: Request timed out", true), (2, "the user pressed escape", false)]
    {
        client.call(request, json!({"n": request}));
        let (id, ..) = gate.call();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": request, "reason": reason}}));
        assert_eq!(gate.hear(), FromClient::Cancel { id, timed_out });
        // What the gate says of it all the same is for nobody.
        gate.done(id, json!({}));
    }
    client.call(3, json!({}));
    let (id, ..) = gate.call();
    gate.done(id, json!({"of": 3}));
    assert_eq!(client.result(3), (r#"{"of":3}"#.to_owned(), false));
}

#[test]
fn a_call_withdrawn_in_the_same_breath_leaves_nothing_waiting() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file_write"}});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.raw(&format!("{call}\n{cancel}"));
    client.call(2, json!({"second": true}));
    // Either the first never reached the gate, or its withdrawal did as well.
    let (mut id, _, mut arguments) = gate.call();
    if arguments.is_empty() {
        assert_eq!(gate.hear(), FromClient::Cancel { id, timed_out: false });
        (id, _, arguments) = gate.call();
    }
    assert_eq!(json!(arguments), json!({"second": true}));
    gate.done(id, json!({}));
    assert_eq!(client.result(2), ("{}".to_owned(), false));
}

#[test]
fn a_call_with_a_token_hears_of_its_progress_until_its_result_and_one_without_hears_nothing() {
    let (mut client, mut gate) = Client::with(Duration::from_millis(20), None).opened(&["file_write"]);
    client.call(1, json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "file_write", "_meta": {"progressToken": "token-7"}}}));
    let ((_, ..), (second, ..)) = (gate.call(), gate.call());
    let mut last = 0.0;
    for _ in 0..3 {
        let told = client.notification();
        assert_eq!(
            (&told["method"], &told["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("token-7"))
        );
        let progress = told["params"]["progress"].as_f64().expect("a number");
        assert!(progress > last, "{told}");
        last = progress;
    }
    gate.done(second, json!({}));
    assert_eq!(client.result(2), ("{}".to_owned(), false));
    // Whatever comes between here and the next reply would be too late.
    client.notifications.clear();
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    client.reply(&json!(3));
    assert_eq!(client.notifications, Vec::<Value>::new());
}

#[test]
fn the_gates_death_denies_what_waits_and_the_next_call_finds_the_next_gate() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    client.call(1, json!({}));
    gate.call();
    drop(gate);
    let (text, is_error) = client.result(1);
    assert!(is_error && text.starts_with("denied (gone): file_write: "), "{text}");

    client.call(2, json!({}));
    let (text, is_error) = client.result(2);
    assert!(is_error && text.contains("cannot reach the gate"), "{text}");

    let gate = client.gate();
    client.call(3, json!({}));
    let mut gate = gate.welcome(&["file_read"]);
    assert_eq!(gate.hear(), FromClient::Name { name: "a test".to_owned() });
    let (id, ..) = gate.call();
    gate.done(id, json!({}));
    assert_eq!(client.result(3), ("{}".to_owned(), false));
    let told = client.notifications.pop().unwrap_or_else(|| client.notification());
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
}

#[test]
fn a_better_connection_is_taken_up_between_two_calls() {
    let (knows, better) = blocking::channel();
    let (mut client, mut first) = Client::with(PROGRESS_EVERY, Some(better)).opened(&["file_write"]);
    let second = client.gate();
    client.call(1, json!({}));
    let (id, ..) = first.call();
    knows.send(()).expect("the server runs");
    client.call(2, json!({}));
    let (also, ..) = first.call();
    first.done(id, json!({}));
    first.done(also, json!({}));
    // In either order: they were under way at the same time.
    client.next();
    client.next();
    client.call(3, json!({}));
    let mut second = second.welcome(&["file_write"]);
    assert!(first.is_closed(), "the first connection is still open");
    assert_eq!(second.hear(), FromClient::Name { name: "a test".to_owned() });
    let (id, ..) = second.call();
    second.done(id, json!({}));
    assert_eq!(client.result(3), ("{}".to_owned(), false));
}

#[test]
fn a_gate_of_another_version_and_one_that_refuses_are_told_and_not_worked_around() {
    let mut client = Client::start();
    for (answer, word) in [
        (FromGate::Welcome { version: VERSION + 1, tools: vec![] }, "version"),
        (FromGate::Refused { why: "another\u{1b}[2J root".to_owned() }, "another\\x1b[2J root"),
    ] {
        let mut gate = client.gate();
        client.call(1, json!({}));
        gate.hear();
        gate.say(&answer);
        let (text, is_error) = client.result(1);
        assert!(is_error && text.contains(word), "{text}");
        assert!(gate.is_closed());
    }
}

#[test]
fn a_wake_is_a_logging_notification_unless_the_client_wants_graver_ones_only() {
    let (mut client, mut gate) = Client::start().opened(&["wake"]);
    gate.say(&FromGate::Wake { note: "look again".to_owned() });
    let told = client.notification();
    assert_eq!(told["method"], json!("notifications/message"));
    assert_eq!(told["params"]["data"], json!({"wake": "look again"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}}));
    assert_eq!(client.reply(&json!(1))["result"], json!({}));
    gate.say(&FromGate::Wake { note: "not heard".to_owned() });
    client.call(2, json!({}));
    let (id, ..) = gate.call();
    gate.done(id, json!({}));
    client.result(2);
    assert_eq!(client.notifications, Vec::<Value>::new());
}

#[test]
fn a_thousand_calls_at_once_get_each_its_own_result() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    let all: Vec<i64> = (0..1000).collect();
    let mut writer = client.stream.try_clone().expect("a second handle");
    let calls: String = all
        .iter()
        .map(|n| {
            let params = json!({"name": "file_write", "arguments": {"n": n}});
            format!("{}\n", json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}))
        })
        .collect();
    let writing = thread::spawn(move || writer.write_all(calls.as_bytes()));
    let mut heard: Vec<(u64, Value)> = all.iter().map(|_| gate.call()).map(|(id, _, n)| (id, n["n"].clone())).collect();
    writing.join().expect("does not panic").expect("writes");
    assert!(heard.is_sorted_by_key(|(id, _)| *id));
    heard.reverse();
    let answering = thread::spawn(move || {
        for (id, n) in heard {
            gate.done(id, json!({"n": n}));
        }
        gate
    });
    let mut replies: HashMap<i64, Value> = HashMap::new();
    while replies.len() < all.len() {
        let reply = client.next();
        let id = reply["id"].as_i64().expect("an id");
        assert!(replies.insert(id, reply["result"]["structuredContent"]["n"].clone()).is_none());
    }
    assert!(replies.iter().all(|(id, n)| n == &json!(id)));
    drop(answering.join().expect("does not panic"));
}

#[test]
fn one_call_too_many_is_answered_at_once_and_does_not_reach_the_gate() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    for n in 0..MAX_CALLS {
        client.call(n as i64, json!({}));
        gate.call();
    }
    client.call(-1, json!({}));
    let (text, is_error) = client.result(-1);
    assert!(is_error && text.contains("under way"), "{text}");
}

#[test]
fn a_client_that_goes_away_takes_what_waits_with_it() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    client.call(1, json!({}));
    let (waited_long, ..) = gate.call();
    client.clock.advance(LAST_CALLS);
    client.call(2, json!({}));
    let (young, ..) = gate.call();
    client.stream.shutdown(Shutdown::Write).expect("closes");
    assert_eq!(gate.hear(), FromClient::Cancel { id: waited_long, timed_out: false });
    gate.done(young, json!({"of": 2}));
    let mut results = String::new();
    client.lines.read_to_string(&mut results).expect("the server says something and ends");
    assert!(results.contains(r#""structuredContent":{"of":2}"#), "{results}");
    client.ends();
    assert!(gate.is_closed(), "the gate still has the connection");
}

#[test]
fn calls_written_at_once_before_the_end_of_the_input_get_their_results() {
    let mut client = Client::start();
    let gate = client.gate();
    client.call(1, json!({}));
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    client.stream.shutdown(Shutdown::Write).expect("closes");
    let mut gate = gate.welcome(&["file_write"]);
    let (id, ..) = gate.call();
    gate.done(id, json!({}));
    let mut ids = [client.next()["id"].clone(), client.next()["id"].clone()];
    ids.sort_by_key(Value::as_i64);
    assert_eq!(ids, [json!(1), json!(2)]);
    client.ends();
}

#[test]
fn a_client_that_cannot_be_written_to_ends_the_server() {
    let (mut client, mut gate) = Client::start().opened(&["file_write"]);
    client.call(1, json!({}));
    let (id, ..) = gate.call();
    client.stream.shutdown(Shutdown::Read).expect("closes");
    // Its input stays open: only the write tells.
    gate.done(id, json!({}));
    client.ends();
    assert!(gate.is_closed(), "the gate still has the connection");
}
