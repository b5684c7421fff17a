//! An agent: a client of the Model Context Protocol over the pipes of `keep mcp`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::support::{PATIENCE, Sandbox, Watch};

/// The agent.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    replies: Receiver<Value>,
    kept: Vec<Value>,
    number: u64,
}

/// Starts `keep gate` with these options, and waits until it serves.
pub fn gate(lab: &Sandbox, options: &[&str]) -> Watch {
    let mut gate = start(lab, options);
    gate.says("agents reach them through keep mcp");
    gate
}

/// Starts `keep gate` with these options.
pub fn start(lab: &Sandbox, options: &[&str]) -> Watch {
    Watch::start(lab, "exec \"$KEEP\" gate \"$@\"", options, 200, 50)
}

/// The control folder of the one root that has been served.
pub fn control(lab: &Sandbox) -> std::path::PathBuf {
    let entries = std::fs::read_dir(lab.state.join("gate")).expect("there is one");
    let folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

impl Agent {
    /// Starts `keep mcp` and shakes hands.
    pub fn new(lab: &Sandbox, options: &[&str]) -> Self {
        let mut command = lab.command(crate::support::keep());
        command.arg("mcp").args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("nothing but JSON-RPC comes out");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut agent = Self { child, input, replies, kept: Vec::new(), number: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}});
        let hello = agent.send("initialize", &hello);
        agent.reply(hello);
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").and_then(|()| input.flush()).expect("keep mcp takes it");
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let id = self.number;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn reply(&mut self, id: u64) -> Value {
        if let Some(at) = self.kept.iter().position(|reply| reply["id"] == id) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.replies.recv_timeout(PATIENCE).expect("a reply");
            if message["id"] == id {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// The names of the tools.
    pub fn tools(&mut self) -> Vec<String> {
        let listed = self.send("tools/list", &json!({}));
        let listed = self.reply(listed);
        let tools = listed["result"]["tools"].as_array().expect("a list");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Calls a tool and does not wait.
    pub fn start(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Writes a file and does not wait.
    pub fn write(&mut self, path: &str, content: &str) -> u64 {
        self.start("file_write", &json!({"path": path, "content": content}))
    }

    /// The structured result of a call that works.
    pub fn works(&mut self, call: u64) -> Value {
        let reply = self.reply(call);
        assert!(reply["result"]["isError"] != true, "{reply}");
        reply["result"]["structuredContent"].clone()
    }

    /// What is said of a call that does not.
    pub fn fails(&mut self, call: u64) -> String {
        let reply = self.reply(call);
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        reply["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        let _it_may_have_ended = self.child.kill();
        let _status = self.child.wait();
    }
}
