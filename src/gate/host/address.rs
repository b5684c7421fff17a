//! Where an address leads.
//!
//! Promise: every address that this machine, its network or its provider may answer itself is [`Class::is_local`],
//! whether written as it is or inside an address of another kind. What is not known to be global unicast is reserved.
//! Limit: a network may route public addresses to itself; nothing in an address says so.
//! Source: the IANA registries of special-purpose IPv4 and IPv6 addresses (RFC 6890 and its updates); RFC 6052 and 8215
//! (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 7915 (translation), and the providers' manuals for metadata services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Anywhere.
    Public,
    /// Nowhere: it stands in examples.
    Documentation,
    /// To nobody, which systems take for this machine.
    Unspecified,
    /// To this machine.
    Loopback,
    /// Into a private network.
    Private,
    /// To the same link.
    LinkLocal,
    /// Into a provider's network, behind its translation.
    Shared,
    /// To many.
    Multicast,
    /// To the service that tells a machine its credentials.
    Metadata,
    /// Nobody should be there.
    Reserved,
}

/// Where providers answer a machine that asks for its own credentials. Some of these lie in public ranges.
const METADATA4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254), // nearly all
    Ipv4Addr::new(169, 254, 170, 2),   // containers at Amazon
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle
    Ipv4Addr::new(168, 63, 129, 16),   // Azure
];
const METADATA6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // Amazon
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // Google
];

impl Class {
    /// The class of this address; of one that holds another, the class of the inner one if that is local.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of4(address),
            IpAddr::V6(address) => {
                embedded(address).map(of4).find(|class| class.is_local()).unwrap_or_else(|| of6(address))
            }
        }
    }

    /// Whether it may be reached only if the policy names it.
    pub const fn is_local(self) -> bool {
        match self {
            Self::Public | Self::Documentation => false,
            Self::Unspecified
            | Self::Loopback
            | Self::Private
            | Self::LinkLocal
            | Self::Shared
            | Self::Multicast
            | Self::Metadata
            | Self::Reserved => true,
        }
    }

    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Documentation => "documentation",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Metadata => "metadata",
            Self::Reserved => "reserved",
        }
    }
}

fn of4(address: Ipv4Addr) -> Class {
    if METADATA4.contains(&address) {
        return Class::Metadata;
    }
    match address.octets() {
        [0, 0, 0, 0] => Class::Unspecified,
        [127, ..] => Class::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        [169, 254, ..] => Class::LinkLocal,
        [100, 64..=127, ..] => Class::Shared,
        [224..=239, ..] => Class::Multicast,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Documentation,
        // This network, protocol assignments, relays of 6to4, benchmarks, the rest of the space and broadcast.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

fn of6(address: Ipv6Addr) -> Class {
    if METADATA6.contains(&address) {
        return Class::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        // Forms that hold an IPv4 address. That it is not local was seen before.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Class::Public,
        // Unique local, site-local (withdrawn, still configured), translation for local use.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Class::Private,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0xff00..=0xffff, ..] => Class::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Documentation,
        // Benchmarks and the identifiers of ORCHID, which are no locations.
        [0x2001, 2, 0, ..] | [0x2001, 0x10..=0x2f, ..] => Class::Reserved,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

/// The IPv4 addresses that this address holds, if it is of a kind that holds any: packets to it may end at them.
pub(super) fn embedded(address: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let [_, _, a, b, c, d, e, f, _, _, _, _, w, x, y, z] = address.octets();
    let last = Ipv4Addr::new(w, x, y, z);
    let found = match address.segments() {
        // Unspecified and loopback are not of the compatible form.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // Compatible (withdrawn), mapped, translated, and behind the well-known prefix.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [Some(last), None]
        }
        // 6to4: the router's.
        [0x2002, ..] => [Some(Ipv4Addr::new(a, b, c, d)), None],
        // Teredo: the server's, and the client's with all bits turned.
        [0x2001, 0, ..] => [Some(Ipv4Addr::new(c, d, e, f)), Some(Ipv4Addr::new(!w, !x, !y, !z))],
        _ => [None, None],
    };
    found.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Class {
        Class::of(text.parse().expect("an address"))
    }

    #[test]
    fn every_range_has_its_class_up_to_its_borders() {
        use Class::*;
        for (text, wanted) in [
            ("0.0.0.0", Unspecified),
            ("0.0.0.1", Reserved),
            ("1.1.1.1", Public),
            ("9.255.255.255", Public),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.64.0.0", Shared),
            ("100.100.100.200", Metadata),
            ("100.127.255.255", Shared),
            ("100.128.0.0", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.0", Public),
            ("168.63.129.16", Metadata),
            ("169.253.255.255", Public),
            ("169.254.0.1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("169.255.0.0", Public),
            ("172.15.255.255", Public),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.0.0.192", Metadata),
            ("192.0.0.1", Reserved),
            ("192.0.2.1", Documentation),
            ("192.88.99.1", Reserved),
            ("192.167.255.255", Public),
            ("192.168.0.0", Private),
            ("192.169.0.0", Public),
            ("198.17.255.255", Public),
            ("198.18.0.0", Reserved),
            ("198.19.255.255", Reserved),
            ("198.20.0.0", Public),
            ("203.0.113.7", Documentation),
            ("223.255.255.255", Public),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.0", Reserved),
            ("255.255.255.255", Reserved),
            ("::", Unspecified),
            ("::1", Loopback),
            ("2001:4860:4860::8888", Public),
            ("2001:db8::7", Documentation),
            ("2001:2::1", Reserved),
            ("2001:20::1", Reserved),
            ("3fff::1", Documentation),
            ("3fff:1000::1", Public),
            ("fbff::1", Reserved),
            ("fc00::1", Private),
            ("fd00:ec2::254", Metadata),
            ("fdff::1", Private),
            ("fe7f::1", Reserved),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
            ("64:ff9b:1::8.8.8.8", Private),
        ] {
            assert_eq!(class(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_address_inside_another_decides() {
        for (inner, wanted) in
            [("127.0.0.1", Class::Loopback), ("10.0.0.1", Class::Private), ("169.254.169.254", Class::Metadata)]
        {
            for outer in ["::ffff:", "::", "::ffff:0:", "64:ff9b::"] {
                assert_eq!(class(&format!("{outer}{inner}")), wanted, "{outer}{inner}");
            }
        }
        assert_eq!(class("2002:7f00:1::1"), Class::Loopback);
        assert_eq!(class("2002:a00:1:5::9"), Class::Private);
        assert_eq!(class("2002:808:808::1"), Class::Public);
        assert_eq!(class("64:ff9b::8.8.8.8"), Class::Public);
        assert_eq!(class("::ffff:8.8.8.8"), Class::Public);
        assert_eq!(class("::8.8.8.8"), Class::Reserved);
        // Teredo: a private server, then a private client behind a public one.
        assert_eq!(class("2001:0:a00:1::"), Class::Private);
        assert_eq!(class("2001:0:808:808:0:0:f5ff:fffe"), Class::Private);
        assert_eq!(class("2001:0:808:808:0:0:f7f7:f7f7"), Class::Public);
    }
}
