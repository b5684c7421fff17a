//! Names nobody can guess.
//!
//! Source: getrandom(2), getentropy(2) on macOS.

use std::io;

/// Twelve hex digits from the kernel's generator.
pub fn hex12() -> io::Result<String> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// So many bytes from the kernel's generator.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(bytes)
}
