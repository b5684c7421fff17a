//! The table of spellings, and what holds for every text.

use proptest::prelude::*;

use super::*;

fn http(text: &str) -> Result<String, HostError> {
    Host::parse(text, Some(80)).map(|host| host.to_string())
}

#[test]
fn spellings_of_one_host_are_one_target() {
    for (text, target) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("example.com:80", "example.com"),
        ("Example.COM.:80", "example.com"),
        ("example.com:443", "example.com:443"),
        ("a.example.test:8080", "a.example.test:8080"),
        ("localhost", "localhost"),
        ("bücher.example.test", "xn--bcher-kva.example.test"),
        ("bu\u{308}cher.example.test", "xn--bcher-kva.example.test"),
        ("BÜCHER.example.test", "xn--bcher-kva.example.test"),
        ("XN--BCHER-KVA.example.test", "xn--bcher-kva.example.test"),
        ("straße.de", "xn--strae-oqa.de"),
        ("203.0.113.7:80", "203.0.113.7"),
        ("[2001:DB8:0:0::7]", "[2001:db8::7]"),
        ("[2001:db8::7]:8080", "[2001:db8::7]:8080"),
        ("2001:db8::7", "[2001:db8::7]"),
        ("[::ffff:8.8.8.8]", "8.8.8.8"),
        ("r3---sn-abc.example.com", "r3---sn-abc.example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("_sip._tcp.example.co.uk", "_sip._tcp.example.co.uk"),
        ("0x7f.example.com", "0x7f.example.com"),
        ("1e100.net", "1e100.net"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("[::]", "[::]"),
    ] {
        assert_eq!(http(text).as_deref(), Ok(target), "{text}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    use HostError as E;
    for (text, why) in [
        ("", E::Empty),
        (".", E::Empty),
        (":80", E::Empty),
        ("a..b", E::Label),
        ("example.com..", E::Label),
        (".example.com", E::Label),
        ("-x.example.test", E::Label),
        ("x-.example.test", E::Label),
        ("xn--.example.test", E::Label),
        ("xn--a.example.test", E::Label),
        ("exa mple.test", E::Character),
        ("approved by admin", E::Character),
        ("example.com\napproved", E::Character),
        ("example.test\x1b]0;owned\x07", E::Character),
        ("exam\u{202e}ple.test", E::Character),
        ("exam\u{ad}ple.test", E::Character),
        ("exam\u{200d}ple.test", E::Character),
        ("example.test\0", E::Character),
        ("example.test/approved", E::Character),
        ("example.test\\approved", E::Character),
        ("example.test?approved", E::Character),
        ("*", E::Character),
        ("*.test", E::Character),
        ("a*b.test", E::Character),
        ("[a].test", E::Address),
        ("(a).test", E::Character),
        ("user@127.0.0.1", E::UserInfo),
        ("user:pass@example.com", E::UserInfo),
        ("%31%32%37.0.0.1", E::Percent),
        ("127.0.0.1%00.example.test", E::Percent),
        ("[fe80::1%25lo]", E::Percent),
        ("fe80::1%lo", E::Percent),
        ("a:b:c", E::Address),
        ("http://example.test", E::Port),
        ("[::1", E::Address),
        ("[::1]x", E::Address),
        ("[127.0.0.1]", E::Address),
        ("[1::2::3]", E::Address),
        ("example.test:99999", E::Port),
        ("example.test:0", E::Port),
        ("example.test:", E::Port),
        ("example.test:+80", E::Port),
        ("example.test:080", E::Port),
        ("2130706433", E::Number),
        ("0x7f.1", E::Number),
        ("0x7f000001", E::Number),
        ("0X7F000001", E::Number),
        ("0x", E::Number),
        ("0177.0.0.1", E::Number),
        ("127.1", E::Number),
        ("127.0.1", E::Number),
        ("017700000001", E::Number),
        ("00127.0.0.1", E::Number),
        ("127.0.0.1.", E::Number),
        ("256.0.0.1", E::Number),
        ("1.2.3.4.5", E::Number),
        ("example.1", E::Number),
        ("１２７.0.0.1", E::Disguised),
        ("127。0。0。1", E::Disguised),
        ("ｅxample.com", E::Disguised),
        ("\u{212a}elvin.com", E::Disguised),
        ("of\u{fb01}ce.com", E::Disguised),
        ("²130706433", E::Disguised),
        ("my_host", E::Underscore),
        ("my_host.example_.com", E::Underscore),
        ("exam_ple.co.uk", E::Underscore),
        ("a.exam_ple.com", E::Underscore),
        ("[::ffff:127.0.0.1]", E::Embedded),
        ("::ffff:10.0.0.1", E::Embedded),
        ("[::ffff:7f00:1]", E::Embedded),
        ("[::127.0.0.1]", E::Embedded),
        ("[64:ff9b::10.0.0.1]", E::Embedded),
        ("[2002:a00:1::]", E::Embedded),
        ("[2002:7f00:1::1]", E::Embedded),
    ] {
        assert_eq!(http(text), Err(why), "{text:?}");
    }
    assert_eq!(http(&format!("{}.test", "a".repeat(64))), Err(E::Label));
    assert_eq!(http(&format!("{}test", "a.".repeat(130))), Err(E::TooLong));
    assert_eq!(http(&"a".repeat(2000)), Err(E::TooLong));
    assert_eq!(http(&format!("{}a", "a.".repeat(126))), Ok(format!("{}a", "a.".repeat(126))));
}

#[test]
fn a_tool_without_ports_takes_none() {
    assert_eq!(Host::parse("example.com:53", None), Err(HostError::UnwantedPort));
    assert_eq!(Host::parse("[::1]:53", None), Err(HostError::UnwantedPort));
    assert!(Host::parse("example.com", None).is_ok_and(|host| host.port().is_none()));
    assert_eq!(Host::parse("::1", None).expect("an address").class(), Some(Class::Loopback));
}

#[test]
fn only_the_canonical_form_is_canonical() {
    for text in ["example.com", "example.com:443", "xn--bcher-kva.test", "[2001:db8::7]:1", "10.0.0.1"] {
        assert_eq!(Host::canonical(text).map(|host| host.to_string()).as_deref(), Ok(text));
    }
    for text in ["Example.com", "example.com.", "bücher.test", "2001:db8::7", "[2001:DB8::7]", "[::ffff:8.8.8.8]"] {
        assert_eq!(Host::canonical(text), Err(HostError::NotCanonical), "{text}");
    }
}

#[test]
fn the_widening_is_one_label_up_and_stays_below_the_suffix() {
    let above = |text: &str| Host::parse(text, None).expect(text).name.widening().map(str::to_owned);
    assert_eq!(above("api.example.com").as_deref(), Some("example.com"));
    assert_eq!(above("a.b.c.example.com").as_deref(), Some("b.c.example.com"));
    assert_eq!(above("shop.example.co.uk").as_deref(), Some("example.co.uk"));
    for text in ["example.com", "example.co.uk", "someone.github.io", "203.0.113.7", "2001:db8::7", "intranet"] {
        assert_eq!(above(text), None, "{text}");
    }
}

/// Texts that look like hosts: pieces that matter, put together.
fn hostlike() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "a",
        "example",
        ".",
        "..",
        "-",
        "_",
        "com",
        "co.uk",
        "xn--",
        "bcher-kva",
        "ü",
        "а",
        "日本",
        "0x7f",
        "127",
        "0",
        "1",
        ":",
        "80",
        "[",
        "]",
        "::",
        "ffff",
        "%25",
        "@",
        "*",
        "１",
        "。",
        "A",
        "\u{200d}",
        "2002",
        "github.io",
    ]);
    proptest::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    for ports in [None, Some(80)] {
        let Ok(host) = Host::parse(text, ports) else { continue };
        let shown = host.to_string();
        prop_assert!(shown.is_ascii() && shown == shown.to_ascii_lowercase(), "{:?}", shown);
        prop_assert!(!shown.contains(['*', '?', '\\', '%', '@', '/', ' ']), "{:?}", shown);
        prop_assert_eq!(&Host::canonical(&shown), &Ok(host.clone()), "{} of {:?}", shown, text);
        match host.name() {
            HostName::Name(name) => {
                prop_assert!(name.len() <= MAX_NAME && !label::ends_in_number(name));
                prop_assert!(!name.contains(':') && name.parse::<IpAddr>().is_err());
            }
            HostName::Address(IpAddr::V6(address)) => {
                prop_assert!(address.to_ipv4_mapped().is_none());
                prop_assert!(address::embedded(*address).all(|inner| !Class::of(inner.into()).is_local()));
            }
            HostName::Address(IpAddr::V4(_)) => {}
        }
        for remark in host.remarks() {
            prop_assert!(!remark.chars().any(text::is_hidden));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_looks_like_a_host_is_canonical_or_refused(text in hostlike()) {
        holds(&text)?;
    }

    #[test]
    fn whatever_is_taken_is_canonical(text in any::<String>()) {
        holds(&text)?;
    }

    #[test]
    fn an_address_within_another_is_as_local_as_by_itself(bits in any::<u32>(), low in any::<u64>()) {
        let inner = Ipv4Addr::from_bits(bits);
        let local = Class::of(inner.into()).is_local();
        let octets = inner.octets();
        let mut relayed = [0; 16];
        relayed[..2].copy_from_slice(&[0x20, 0x02]);
        relayed[2..6].copy_from_slice(&octets);
        relayed[8..].copy_from_slice(&low.to_be_bytes());
        for outer in [inner.to_ipv6_mapped(), Ipv6Addr::from(relayed), Ipv6Addr::from_bits((0x64_ff9b << 96) | u128::from(bits))] {
            prop_assert_eq!(Class::of(outer.into()).is_local(), local, "{}", outer);
            prop_assert_eq!(Host::parse(&outer.to_string(), None).is_err(), local, "{}", outer);
        }
    }
}
