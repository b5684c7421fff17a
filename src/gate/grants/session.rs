//! Asking a running gate what is granted for its session, or to forget it.
//!
//! Promise: one message is sent, which can only list or take away; what the gate says is read in frames of bounded length.
//! Limit: it waits as long as the connection does.

use std::io::{self, Read, Write};

use crate::gate::frame::{self, FrameError};
use crate::gate::wire::{FromClient, FromGate, GrantInfo, VERSION};
use crate::text::escaped;

/// Why a gate did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It could not be asked.
    #[error("cannot ask the gate")]
    Ask(#[source] io::Error),
    /// It said nothing for as long as the connection waits.
    #[error("the gate does not answer")]
    Silent,
    /// It said nothing that can be understood.
    #[error("cannot understand the gate")]
    Answer(#[source] FrameError),
    /// It does not serve us.
    #[error("the gate says: {}", escaped(.0.as_bytes()))]
    Refused(String),
    /// It is of another version.
    #[error("the gate that runs is of another version; end it and start it again")]
    Version,
}

/// Asks a gate over a new connection: [`FromClient::ListGrants`] or [`FromClient::ForgetSession`]. Returns what is granted
/// for the session after it.
pub fn ask(
    from_gate: &mut impl Read,
    to_gate: &mut impl Write,
    request: &FromClient,
) -> Result<Vec<GrantInfo>, SessionError> {
    let hello = FromClient::Hello { version: VERSION, unattended: true };
    frame::write(to_gate, &hello).map_err(SessionError::Ask)?;
    let mut is_welcome = false;
    loop {
        match frame::read(from_gate).map_err(answer)? {
            FromGate::Welcome { version: VERSION, .. } if !is_welcome => {
                is_welcome = true;
                frame::write(to_gate, request).and_then(|()| to_gate.flush()).map_err(SessionError::Ask)?;
            }
            FromGate::Welcome { .. } => return Err(SessionError::Version),
            FromGate::Refused { why } => return Err(SessionError::Refused(why)),
            FromGate::SessionGrants { grants } if is_welcome => return Ok(grants),
            // Nothing was called, and what others are told is none of our business.
            FromGate::SessionGrants { .. } | FromGate::Done { .. } | FromGate::Wake { .. } => {}
        }
    }
}

fn answer(error: FrameError) -> SessionError {
    match error {
        // A read that is limited ends so: socket(7), `SO_RCVTIMEO`.
        FrameError::Read(error) if error.kind() == io::ErrorKind::WouldBlock => SessionError::Silent,
        error => SessionError::Answer(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[FromGate]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| frame::write(&mut bytes, message).expect("writes"));
        bytes
    }

    fn grants(target: &str) -> FromGate {
        FromGate::SessionGrants { grants: vec![GrantInfo { kind: "file".into(), target: target.into() }] }
    }

    fn welcome(version: u32) -> FromGate {
        FromGate::Welcome { version, tools: vec![] }
    }

    #[test]
    fn it_says_hello_asks_once_and_takes_the_answer_to_that() {
        let gate = said(&[welcome(VERSION), FromGate::Wake { note: "n".into() }, grants("a.txt")]);
        let mut heard = Vec::new();
        let listed = ask(&mut &gate[..], &mut heard, &FromClient::ForgetSession).expect("is answered");
        assert_eq!(listed, [GrantInfo { kind: "file".into(), target: "a.txt".into() }]);
        let mut heard = &heard[..];
        let hello = FromClient::Hello { version: VERSION, unattended: true };
        assert_eq!(frame::read::<FromClient>(&mut heard).expect("reads"), hello);
        assert_eq!(frame::read::<FromClient>(&mut heard).expect("reads"), FromClient::ForgetSession);
        assert!(heard.is_empty());
    }

    #[test]
    fn a_gate_that_refuses_is_of_another_version_or_goes_away_is_an_error() {
        let ask = |messages: &[FromGate]| ask(&mut &said(messages)[..], &mut Vec::new(), &FromClient::ListGrants);
        let refused = ask(&[FromGate::Refused { why: "full\u{1b}[2J".into() }]).expect_err("refused").to_string();
        assert_eq!(refused, "the gate says: full\\x1b[2J");
        assert!(matches!(ask(&[welcome(VERSION + 1), grants("a")]), Err(SessionError::Version)));
        assert!(matches!(ask(&[grants("a"), welcome(VERSION)]), Err(SessionError::Answer(FrameError::Closed))));
        assert!(matches!(ask(&[]), Err(SessionError::Answer(FrameError::Closed))));
    }
}
