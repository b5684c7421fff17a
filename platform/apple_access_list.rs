//! The portable form of an access list of macOS: which bytes are one.
//!
//! Promise: pure; [`is_whole`] says yes only of bytes that are exactly as long as their header says. The system's reader
//! takes the header's word for how much there is to read, and the bytes may come from a folder others can write to.
//! Limit: what the entries mean is the system's affair; it refuses what it does not know.
//! Source: acl_copy_ext(3); sys/kauth.h, `kauth_filesec`, `kauth_acl`, `kauth_ace`: numbers are big-endian.

/// `KAUTH_FILESEC_MAGIC`.
const MAGIC: [u8; 4] = 0x012c_c16d_u32.to_be_bytes();

/// Magic, the identities of owner and group (16 bytes each, not used), the count of entries, flags.
const HEADER: usize = 4 + 16 + 16 + 4 + 4;

/// Where the count stands.
const COUNT: std::ops::Range<usize> = 36..40;

/// An identity (16 bytes), kind and inheritance, rights.
const ENTRY: usize = 16 + 4 + 4;

/// `KAUTH_ACL_MAX_ENTRIES`.
const MOST: u32 = 128;

/// Whether the bytes are a list, all of it, and nothing more. A list without entries is one; "no list at all", which the
/// form can say, too, is none.
pub fn is_whole(bytes: &[u8]) -> bool {
    let count = bytes.get(COUNT).and_then(|count| count.try_into().ok()).map(u32::from_be_bytes);
    bytes.starts_with(&MAGIC)
        && count.is_some_and(|count| count <= MOST && bytes.len() == HEADER + count as usize * ENTRY)
}

/// A list with one entry: everyone (the group 12, whose identity is the same on each system) may read.
pub const SAMPLE: [u8; HEADER + ENTRY] = *b"\x01\x2c\xc1\x6d\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\x01\
    \0\0\0\0\
    \xab\xcd\xef\xab\xcd\xef\xab\xcd\xef\xab\xcd\xef\x00\x00\x00\x0c\
    \0\0\0\x01\
    \0\0\0\x02";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_is_whole_and_no_part_of_it_nor_more_is() {
        assert!(is_whole(&SAMPLE));
        for length in 0..SAMPLE.len() {
            assert!(!is_whole(&SAMPLE[..length]), "{length} bytes of it");
        }
        assert!(!is_whole(&[&SAMPLE[..], b"\0"].concat()));
        let mut empty = SAMPLE[..HEADER].to_vec();
        empty[COUNT].fill(0);
        assert!(is_whole(&empty));
    }

    #[test]
    fn neither_another_magic_nor_the_word_for_none_is_a_list() {
        let mut other = SAMPLE;
        other[0] = 2;
        assert!(!is_whole(&other));
        let mut none = SAMPLE[..HEADER].to_vec();
        none[COUNT].fill(0xff);
        assert!(!is_whole(&none));
    }

    proptest! {
        #[test]
        fn whatever_the_count_says_is_there_or_it_is_no_list(count in any::<u32>(), length in 0_usize..5000) {
            let mut bytes = SAMPLE[..HEADER].to_vec();
            bytes[COUNT].copy_from_slice(&count.to_be_bytes());
            bytes.resize(length.max(COUNT.end), 0);
            let said = HEADER as u64 + u64::from(count) * ENTRY as u64;
            prop_assert!(!is_whole(&bytes) || bytes.len() as u64 == said);
        }
    }
}
