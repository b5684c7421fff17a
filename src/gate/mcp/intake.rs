//! What one line of the client's means.
//!
//! Promise: a line is taken, answered with a JSON-RPC error, or passed over; it never ends the server. A request that can
//! be told apart from others by its id gets exactly one answer, and an error about it carries that id. No error repeats
//! what the client wrote.
//! Limit: nothing here is refused for coming before `initialize`; the protocol asks clients, not servers, to wait.
//! Source: JSON-RPC 2.0; Model Context Protocol 2025-11-25, "Base Protocol". There an error about a message whose id could
//! not be read has none. Batches are of revision 2025-03-26 alone; their members are taken one by one.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientCapabilities,
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta as _, Implementation,
    InitializeRequest, InitializeRequestParams, InitializedNotification, ListToolsRequest, PaginatedRequestParams,
    PingRequest, ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use serde_json::{Map, Value};

use crate::gate::frame;

use super::notices;

/// What comes of a message.
#[derive(Debug)]
pub enum Taken {
    /// One for the server.
    Message(Box<ClientJsonRpcMessage>),
    /// One that is answered at once.
    Reply(Box<ServerJsonRpcMessage>),
}

/// What comes of a line that was too long to be read.
pub fn too_long() -> Taken {
    refused(None, ErrorCode::INVALID_REQUEST, "the message is longer than 128 MiB")
}

/// What comes of a line; more than one thing if it is a batch.
pub fn take(line: &[u8]) -> Vec<Taken> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Vec::new();
    }
    if frame::holds_too_much(line) {
        return vec![refused(None, ErrorCode::INVALID_REQUEST, "the message holds more values than any call takes")];
    }
    match serde_json::from_slice(line) {
        // The parser stops at 128 levels, so that a deep line cannot overrun the stack.
        Err(_) => vec![refused(None, ErrorCode::PARSE_ERROR, "the line is no JSON, or nested too deeply")],
        Ok(Value::Array(batch)) if batch.is_empty() => {
            vec![refused(None, ErrorCode::INVALID_REQUEST, "the batch is empty")]
        }
        Ok(Value::Array(batch)) => batch.into_iter().filter_map(message).collect(),
        Ok(value) => message(value).into_iter().collect(),
    }
}

fn message(value: Value) -> Option<Taken> {
    let Value::Object(mut message) = value else {
        return Some(refused(None, ErrorCode::INVALID_REQUEST, "a message is a JSON object"));
    };
    let is_version_two = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let params = message.remove("params").unwrap_or(Value::Null);
    let id = message.remove("id").map(serde_json::from_value::<RequestId>);
    match (message.remove("method"), id) {
        // An answer: this server asks its client nothing, so that there is nothing it could be to. It comes first, so that
        // an error about an error is not answered with another, back and forth without end.
        (None, _) if message.contains_key("result") || message.contains_key("error") => None,
        (Some(Value::String(method)), None) => {
            // A notification is never answered, whatever is wrong with it.
            is_version_two.then(|| notification(&method, params)).flatten()
        }
        (_, Some(Err(_))) => Some(refused(None, ErrorCode::INVALID_REQUEST, "an id is a string or an integer")),
        (Some(Value::String(method)), Some(Ok(id))) => Some(if is_version_two {
            match request(&method, params) {
                Ok(request) => Taken::Message(Box::new(ClientJsonRpcMessage::request(request, id))),
                Err(error) => Taken::Reply(Box::new(ServerJsonRpcMessage::error(error, Some(id)))),
            }
        } else {
            refused(Some(id), ErrorCode::INVALID_REQUEST, "`jsonrpc` has to be \"2.0\"")
        }),
        (Some(_), id) => {
            Some(refused(id.and_then(Result::ok), ErrorCode::INVALID_REQUEST, "the method is not a string"))
        }
        (None, id) => Some(refused(id.and_then(Result::ok), ErrorCode::INVALID_REQUEST, "the message has no method")),
    }
}

fn refused(id: Option<RequestId>, code: ErrorCode, why: &'static str) -> Taken {
    Taken::Reply(Box::new(ServerJsonRpcMessage::error(ErrorData::new(code, why, None), id)))
}

fn wrong(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, why, None)
}

fn notification(method: &str, params: Value) -> Option<Taken> {
    let notification = match method {
        "notifications/initialized" => ClientNotification::InitializedNotification(InitializedNotification::default()),
        "notifications/cancelled" => {
            let id = serde_json::from_value(params.get("requestId")?.clone()).ok()?;
            let reason = params.get("reason").and_then(Value::as_str).map(str::to_owned);
            let params = CancelledNotificationParam::new(Some(id), reason);
            ClientNotification::CancelledNotification(CancelledNotification::new(params))
        }
        _ => return None,
    };
    Some(Taken::Message(Box::new(ClientJsonRpcMessage::notification(notification))))
}

fn request(method: &str, params: Value) -> Result<ClientRequest, ErrorData> {
    let mut params = match params {
        Value::Null => Map::new(),
        Value::Object(params) => params,
        _ => return Err(wrong("`params` is not an object")),
    };
    let meta = match params.remove("_meta") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(meta)) => meta,
        Some(_) => return Err(wrong("`_meta` is not an object")),
    };
    let mut request = match method {
        "ping" => ClientRequest::PingRequest(PingRequest::default()),
        "initialize" => ClientRequest::InitializeRequest(InitializeRequest::new(initialize(&params)?)),
        "tools/list" => {
            let cursor = text(&mut params, "cursor")?;
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params))
        }
        "tools/call" => ClientRequest::CallToolRequest(CallToolRequest::new(call(params)?)),
        "logging/setLevel" => notices::set_level(params.remove("level").unwrap_or(Value::Null))
            .ok_or_else(|| wrong("`level` is none of the eight levels"))?,
        // Also `server/discover`, by which a client of a later revision learns that it should begin with `initialize`.
        _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method", None)),
    };
    if !meta.is_empty() {
        *request.get_meta_mut() = RequestMetaObject(meta.into());
    }
    Ok(request)
}

/// Only what is used: what else a client says of itself may have any shape.
fn initialize(params: &Map<String, Value>) -> Result<InitializeRequestParams, ErrorData> {
    let version = params.get("protocolVersion").filter(|version| version.is_string());
    let version = version.ok_or_else(|| wrong("`protocolVersion` is not a string"))?;
    let version: ProtocolVersion =
        serde_json::from_value(version.clone()).map_err(|_| wrong("`protocolVersion` is not a string"))?;
    let info = |field: &str| params.get("clientInfo")?.get(field)?.as_str();
    let client = Implementation::new(info("name").unwrap_or_default(), info("version").unwrap_or_default());
    Ok(InitializeRequestParams::new(ClientCapabilities::default(), client).with_protocol_version(version))
}

fn call(mut params: Map<String, Value>) -> Result<CallToolRequestParams, ErrorData> {
    let name = text(&mut params, "name")?.ok_or_else(|| wrong("`name` is missing"))?;
    let arguments = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(wrong("`arguments` is not an object")),
    };
    Ok(CallToolRequestParams::new(name).with_arguments(arguments))
}

fn text(params: &mut Map<String, Value>, field: &str) -> Result<Option<String>, ErrorData> {
    match params.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) if field == "name" => Err(wrong("`name` is not a string")),
        Some(_) => Err(wrong("`cursor` is not a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// What came of a line, as JSON: messages as `{"message": …}`, replies as they are sent.
    fn taken(line: &str) -> Vec<Value> {
        let shown = |taken: Taken| match taken {
            Taken::Message(message) => json!({"message": message}),
            Taken::Reply(reply) => serde_json::to_value(reply).expect("serializes"),
        };
        take(line.as_bytes()).into_iter().map(shown).collect()
    }

    fn error(line: &str) -> (Value, i64) {
        let [reply] = &taken(line)[..] else { panic!("one reply to {line}: {:?}", taken(line)) };
        (reply.get("id").cloned().unwrap_or_default(), reply["error"]["code"].as_i64().unwrap_or_default())
    }

    #[test]
    fn what_is_no_request_is_answered_with_its_error_code_and_its_id_if_it_has_one() {
        for (line, id, code) in [
            ("this is no JSON", json!(null), -32700),
            ("{\"jsonrpc\": \"2.0\", \"id\": 1", json!(null), -32700),
            ("\"\u{1}\"", json!(null), -32700),
            ("7", json!(null), -32600),
            ("[]", json!(null), -32600),
            ("[7]", json!(null), -32600),
            (r#"{"jsonrpc": "2.0", "id": 7}"#, json!(7), -32600),
            (r#"{"jsonrpc": "2.0", "id": "x", "method": 7}"#, json!("x"), -32600),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, json!(null), -32600),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, json!(null), -32600),
            (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, json!(null), -32600),
            (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, json!(1), -32600),
            (r#"{"id": 1, "method": "ping"}"#, json!(1), -32600),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "no/such/method"}"#, json!(1), -32601),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}"#, json!(1), -32601),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#, json!(1), -32602),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}"#, json!(1), -32602),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}}"#, json!(1), -32602),
            (
                r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "a", "arguments": []}}"#,
                json!(9),
                -32602,
            ),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": 7}}"#, json!(1), -32602),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#, json!(1), -32602),
            (
                r#"{"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "loud"}}"#,
                json!(1),
                -32602,
            ),
        ] {
            assert_eq!(error(line), (id, code), "{line}");
        }
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(error(&deep), (json!(null), -32700));
    }

    #[test]
    fn notifications_and_answers_are_never_answered() {
        for line in [
            "",
            "   \r",
            r#"{"jsonrpc": "2.0", "method": "notifications/nonsense"}"#,
            r#"{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "file_write"}}"#,
            r#"{"jsonrpc": "1.0", "method": "notifications/initialized"}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/cancelled"}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}"#,
            r#"{"jsonrpc": "2.0", "id": 3, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "x"}}"#,
            r#"{"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}}"#,
            r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}}"#,
        ] {
            assert_eq!(taken(line), Vec::<Value>::new(), "{line}");
        }
    }

    #[test]
    fn what_clients_leave_out_or_add_is_taken() {
        for line in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}"#,
            r#"{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"cursor": null}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": null}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "task": {"ttl": 1}}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "1",
                "capabilities": {"roots": true}, "clientInfo": {"name": 7}}}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}"#,
            "\u{feff}{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\r",
        ] {
            let [taken] = &taken(line)[..] else { panic!("one message of {line}") };
            assert!(taken.get("message").is_some(), "{line}: {taken}");
        }
        let batch = r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, 7, {"jsonrpc": "2.0", "id": 2, "method": "x"}]"#;
        let batch = taken(batch);
        assert!(batch[0].get("message").is_some());
        assert_eq!((&batch[1]["error"]["code"], &batch[2]["error"]["code"]), (&json!(-32600), &json!(-32601)));
    }

    #[test]
    fn a_call_keeps_its_arguments_and_its_progress_token() {
        let line = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file_write",
            "arguments": {"path": "a", "content": "\u0000\n"}, "_meta": {"progressToken": "token-7"}}}"#;
        let [Taken::Message(message)] = &take(line.as_bytes())[..] else { panic!("a message") };
        let ClientJsonRpcMessage::Request(request) = &**message else { panic!("a request") };
        let token = request.request.get_meta().get_progress_token().expect("has a token");
        assert_eq!(serde_json::to_value(token).expect("serializes"), json!("token-7"));
        let ClientRequest::CallToolRequest(call) = &request.request else { panic!("a call") };
        assert_eq!(call.params.name, "file_write");
        assert_eq!(json!(call.params.arguments), json!({"path": "a", "content": "\0\n"}));
    }

    #[test]
    fn a_line_of_very_many_values_is_refused_and_one_of_long_text_is_not() {
        let call = |argument: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"a":{argument}}}}}}}"#
            )
        };
        let many = call(&format!("[{}0]", "0,".repeat(frame::MAX_VALUES)));
        assert_eq!(taken(&many)[0]["error"]["code"], json!(-32600));
        let long = call(&format!("\"{}\"", "0,".repeat(frame::MAX_VALUES)));
        assert!(taken(&long)[0].get("message").is_some());
    }

    #[test]
    fn no_error_repeats_what_the_client_wrote() {
        for line in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "hunter2"}"#,
            r#"{"jsonrpc": "hunter2", "id": 1, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "hunter2"}"#,
            "hunter2",
        ] {
            assert!(!json!(taken(line)).to_string().contains("hunter2"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            take(&bytes);
        }

        #[test]
        fn a_request_with_an_id_gets_one_message_or_one_error_with_that_id(
            id in prop_oneof![any::<i64>().prop_map(|id| json!(id)), ".{0,10}".prop_map(|id| json!(id))],
            method in prop_oneof![
                Just("ping"), Just("initialize"), Just("tools/list"), Just("tools/call"), Just("logging/setLevel"),
                Just("resources/list"), Just("")
            ],
            params in prop_oneof![
                Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!({"name": "a"})), Just(json!({"level": "info"})),
                Just(json!({"protocolVersion": "x"})), Just(json!({"name": "a", "arguments": 7})), Just(json!({"cursor": 7}))
            ],
        ) {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
            let taken = taken(&line);
            prop_assert_eq!(taken.len(), 1);
            let answered = taken[0].get("message").unwrap_or(&taken[0]);
            prop_assert_eq!(&answered["id"], &id);
        }
    }
}
