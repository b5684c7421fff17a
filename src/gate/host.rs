//! Hosts in their one canonical form.

use std::fmt;
use std::net::IpAddr;

/// What a host is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostName {
    /// A name: lower case, A-labels, no trailing dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// A host, and its port if it is not the default one of its scheme.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    pub(super) name: HostName,
    pub(super) port: Option<u16>,
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::Name(name) => formatter.write_str(name)?,
            HostName::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
            HostName::Address(address) => address.fmt(formatter)?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
