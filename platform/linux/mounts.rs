//! The text of `/proc/self/mountinfo`, as values.
//!
//! Source: proc_pid_mountinfo(5): mount id, parent, device, root, mount point, …; space, tab, newline and backslash in a
//! path are written as a backslash and three octal digits.

/// A mount: its id and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    /// As `stx_mnt_id`.
    pub id: u64,
    /// The path it is mounted at.
    pub point: Vec<u8>,
}

/// The mounts in the text; lines that are something else are passed over.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Mount> + '_ {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        Some(Mount { id, point: unescape(fields.nth(3)?) })
    })
}

/// A path as it is, from a field of the text.
pub(super) fn unescape(field: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        rest = match octal {
            Some(digits) => {
                path.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                &after[3..]
            }
            None => {
                path.push(byte);
                after
            }
        };
    }
    path
}

/// Whether a mount at `point` matters to what lies at `dir`: it is `dir`, above it, or below it.
pub fn concerns(point: &[u8], dir: &[u8]) -> bool {
    let is_below = |path: &[u8], of: &[u8]| {
        let of = of.strip_suffix(b"/").unwrap_or(of);
        path.strip_prefix(of).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    };
    is_below(point, dir) || is_below(dir, point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_unescaped_points_are_taken() {
        let text = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n\nnonsense\n7 1 0:5 / / rw - x y z\n";
        let mounts: Vec<_> = parse(text).collect();
        assert_eq!(mounts, [Mount { id: 36, point: b"/mnt/a b".to_vec() }, Mount { id: 7, point: b"/".to_vec() }]);
    }

    #[test]
    fn only_whole_components_concern() {
        assert!(concerns(b"/a/b", b"/a"));
        assert!(concerns(b"/a", b"/a/b"));
        assert!(concerns(b"/", b"/a"));
        assert!(!concerns(b"/ab", b"/a"));
        assert!(!concerns(b"/a/c", b"/a/b"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            proptest::prop_assert!(parse(&text).count() <= text.len());
        }
    }
}
