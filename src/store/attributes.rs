//! Extended attributes as bytes, so that they can be stored like content and named by a digest.
//!
//! Promise: the same attributes give the same bytes, and those bytes give them back. Limit: no more than 4 GiB each.
//! Format: for each attribute in order of names, length of the name, name, length of the value, value; lengths are four
//! bytes, least significant first.

use std::collections::BTreeMap;

/// The attributes as bytes.
pub fn serialize_attributes(attributes: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in attributes.iter().flat_map(|(name, value)| [name, value]) {
        let length = u32::try_from(part.len()).expect("the kernel limits attributes to 64 KiB");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// The attributes these bytes stand for; `None` if they are not what [`serialize_attributes`] makes.
pub fn parse_attributes(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut attributes = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let name = part(&mut rest)?.to_vec();
        let value = part(&mut rest)?.to_vec();
        if attributes.last_key_value().is_some_and(|(last, _): (&Vec<u8>, _)| *last >= name) {
            return None;
        }
        attributes.insert(name, value);
    }
    Some(attributes)
}

fn part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn attributes_come_back(map in proptest::collection::btree_map(any::<Vec<u8>>(), any::<Vec<u8>>(), 0..5)) {
            prop_assert_eq!(parse_attributes(&serialize_attributes(&map)), Some(map));
        }

        #[test]
        fn only_what_was_serialized_is_parsed(bytes in proptest::collection::vec(0u8..4, 0..40)) {
            if let Some(map) = parse_attributes(&bytes) {
                prop_assert_eq!(serialize_attributes(&map), bytes);
            }
        }
    }
}
