//! Hosts in their one canonical form.
//!
//! Promise: two spellings of one host become one value, and what could be read as another host than the one that is
//! reached is refused: user info, percent-encoding, zones, numbers that are addresses to some programs, characters that
//! turn into ASCII ones, addresses of this machine or its network inside another address. No host holds a wildcard
//! character, white space or anything hidden, so none is room for prose.
//! Limit: names that only look alike stay apart, and are remarked upon ([`Host::remarks`]). What a name resolves to is
//! not known here.
//! Source: RFC 952, 1123, 3986 (hosts), RFC 5890 and UTS #46 (IDNA), WHATWG URL (names that end in a number).

pub mod address;
mod label;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::text;

pub use address::Class;

/// The longest name, in bytes, without a trailing dot: what RFC 1035 leaves of its 255 octets.
pub const MAX_NAME: usize = 253;
/// The longest text that is looked at at all: a longest name whose every character takes four bytes, and a port.
const MAX_TEXT: usize = 1024;

/// Why a host was refused; the text is for the agent and does not repeat the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing was given.
    #[error("the host is empty")]
    Empty,
    /// It is too long.
    #[error("the host has more than {MAX_NAME} bytes")]
    TooLong,
    /// It has a character that no host has.
    #[error("the host has a character that no host has")]
    Character,
    /// It has an `@`.
    #[error("the host has user info before it")]
    UserInfo,
    /// It has a `%`.
    #[error("the host has a `%` in it: percent-encoding and zones are refused")]
    Percent,
    /// A port was written where there is none.
    #[error("a host without a port is expected")]
    UnwantedPort,
    /// The port is no number from 1 to 65535 in plain digits.
    #[error("the port is not a number from 1 to 65535 in plain digits")]
    Port,
    /// It stands in brackets or has several colons, and is no IPv6 address.
    #[error("the host is not an IPv6 address")]
    Address,
    /// Some programs read it as an IPv4 address, and it is not written as one.
    #[error("the host ends in a number and is not an IPv4 address in its usual form, four decimal numbers")]
    Number,
    /// An IPv6 address that holds an IPv4 address of this machine or its network.
    #[error("the address holds another one, which belongs to this machine or its network")]
    Embedded,
    /// A label is empty, too long, begins or ends with a hyphen, or is not what IDNA allows.
    #[error("the host has a label that no name has")]
    Label,
    /// An underscore where names are registered.
    #[error("the host has an underscore in its registrable part")]
    Underscore,
    /// A character that turns into another one, or into ASCII.
    #[error("the host has a character that is only another way to write a plain one")]
    Disguised,
    /// It is a host, but not in its canonical form.
    #[error("the host is not in its canonical form")]
    NotCanonical,
}

/// What a host is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostName {
    /// A name: lower case, A-labels, no trailing dot.
    Name(String),
    /// An address; never an IPv4 address in an IPv6 one's form.
    Address(IpAddr),
}

/// A host, and its port if it is not the default one of its scheme.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    pub(super) name: HostName,
    pub(super) port: Option<u16>,
}

/// Which ports may be written.
#[derive(Clone, Copy)]
enum Ports {
    None,
    Default(u16),
    Any,
}

impl Host {
    /// Brings a host, with a port behind it or not, into its canonical form. The port is dropped if it is the default
    /// one; without a default port none may be written.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        read(text, default_port.map_or(Ports::None, Ports::Default))
    }

    /// Takes a host that is in its canonical form already, as [`fmt::Display`] writes it.
    pub fn canonical(text: &str) -> Result<Self, HostError> {
        let host = read(text, Ports::Any)?;
        if host.to_string() == text { Ok(host) } else { Err(HostError::NotCanonical) }
    }

    /// What it is called.
    pub const fn name(&self) -> &HostName {
        &self.name
    }

    /// Its port, if that is not the default one.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Where its address leads; `None` for a name.
    pub fn class(&self) -> Option<Class> {
        match self.name {
            HostName::Address(address) => Some(Class::of(address)),
            HostName::Name(_) => None,
        }
    }

    /// What a person should know of the name's labels that are not plain ASCII, a line each, escaped.
    pub fn remarks(&self) -> Vec<String> {
        match &self.name {
            HostName::Name(name) => label::remarks(name),
            HostName::Address(_) => Vec::new(),
        }
    }
}

impl HostName {
    /// The name one label up, if a grant may cover all that lies below it: it is still a registrable domain, or lies
    /// below one. `None` for addresses.
    pub(super) fn widening(&self) -> Option<&str> {
        match self {
            Self::Name(name) => name.split_once('.').map(|(_, above)| above).filter(|above| label::may_widen(above)),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(formatter)?;
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Whether all names below this domain, which is in its canonical form, may be granted at once.
pub(super) fn may_widen(domain: &str) -> bool {
    label::may_widen(domain)
}

fn read(text: &str, ports: Ports) -> Result<Host, HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > MAX_TEXT {
        return Err(HostError::TooLong);
    }
    if text.chars().any(|character| character.is_whitespace() || text::is_hidden(character)) {
        return Err(HostError::Character);
    }
    if text.contains('@') {
        return Err(HostError::UserInfo);
    }
    if text.contains('%') {
        return Err(HostError::Percent);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(HostError::Address)?;
        let port = match after {
            "" => None,
            after => Some(after.strip_prefix(':').ok_or(HostError::Address)?),
        };
        return Ok(Host { name: address6(address)?, port: read_port(port, ports)? });
    }
    // Without brackets, as a tool that takes no port is given it.
    if text.bytes().filter(|byte| *byte == b':').count() > 1 {
        return Ok(Host { name: address6(text)?, port: None });
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let port = read_port(port, ports)?;
    let canonical = label::canonical(name)?;
    if !label::ends_in_number(&canonical) {
        return Ok(Host { name: HostName::Name(canonical), port });
    }
    // `from_str` takes neither octal, hexadecimal nor short forms. It sees what was written, a trailing dot included:
    // programs do not agree on whether that is an address.
    let address: Ipv4Addr = name.parse().map_err(|_| HostError::Number)?;
    Ok(Host { name: HostName::Address(address.into()), port })
}

fn address6(text: &str) -> Result<HostName, HostError> {
    let address: Ipv6Addr = text.parse().map_err(|_| HostError::Address)?;
    if address::embedded(address).any(|inner| Class::of(inner.into()).is_local()) {
        return Err(HostError::Embedded);
    }
    Ok(HostName::Address(address.to_ipv4_mapped().map_or(address.into(), IpAddr::V4)))
}

fn read_port(port: Option<&str>, ports: Ports) -> Result<Option<u16>, HostError> {
    let Some(digits) = port else { return Ok(None) };
    if matches!(ports, Ports::None) {
        return Err(HostError::UnwantedPort);
    }
    if digits.is_empty() || digits.starts_with('0') || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(HostError::Port);
    }
    let port: u16 = digits.parse().map_err(|_| HostError::Port)?;
    Ok(match ports {
        Ports::Default(default) if default == port => None,
        _ => Some(port),
    })
}

#[cfg(test)]
mod tests;
