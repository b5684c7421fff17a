//! What was printed, without what only moves, colours and rings.

/// The text without escape sequences and bells; line ends stay.
pub fn plain(raw: &[u8]) -> String {
    let mut text = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            0x1b => match bytes.next() {
                // ECMA-48: CSI, parameters, a final byte from `@` to `~`.
                Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
                // OSC, ended by BEL or ST.
                Some(b']') => while bytes.next().is_some_and(|byte| byte != 0x07 && byte != b'\\') {},
                _ => {}
            },
            0x07 => {}
            byte => text.push(byte),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The same without white space, so that it does not matter where lines were wrapped.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}
