//! The flags that macOS keeps with a file (`st_flags`): which of them are part of what a file is.
//!
//! Promise: pure; [`change`] leaves every flag alone that is not one of ours. Limit: compression (`UF_COMPRESSED`) and a
//! content that is elsewhere (`SF_DATALESS`) are how a file is stored, not what it is: a file that is laid anew has neither.
//! Source: chflags(2), sys/stat.h.

use crate::attributes::Flags;

/// What a flag is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Compared and set again.
    Kept,
    /// Left as it is, by what is laid anew as well: how the file is stored, or what other programs make of it.
    Left,
    /// Nobody but the kernel sets it.
    System,
}

/// A flag: its bit, its name for chflags(1) or in the header, what it is to us.
pub type Row = (u32, &'static str, Standing);

/// Every flag of the header.
pub const TABLE: [Row; 14] = [
    (0x0000_0001, "nodump", Standing::Left),
    (UF_IMMUTABLE, "uchg", Standing::Kept),
    (UF_APPEND, "uappnd", Standing::Kept),
    (0x0000_0008, "opaque", Standing::Left),
    (0x0000_0020, "compressed", Standing::Left),
    (0x0000_0040, "tracked", Standing::Left),
    (0x0000_0080, "datavault", Standing::System),
    (0x0000_8000, "hidden", Standing::Left),
    (0x0001_0000, "arch", Standing::Left),
    (SF_IMMUTABLE, "schg", Standing::Kept),
    (SF_APPEND, "sappnd", Standing::Kept),
    (0x0008_0000, "restricted", Standing::System),
    (0x0010_0000, "sunlnk", Standing::System),
    (SF_DATALESS, "dataless", Standing::System),
];

const UF_IMMUTABLE: u32 = 0x0000_0002;
const UF_APPEND: u32 = 0x0000_0004;
const SF_IMMUTABLE: u32 = 0x0002_0000;
const SF_APPEND: u32 = 0x0004_0000;
const SF_DATALESS: u32 = 0x4000_0000;

/// What the flags of a file say that is ours.
pub const fn read(flags: u32) -> Flags {
    Flags { immutable: flags & (UF_IMMUTABLE | SF_IMMUTABLE) != 0, append_only: flags & (UF_APPEND | SF_APPEND) != 0 }
}

/// Whether the content is not on this machine, so that reading would fetch it.
pub const fn is_dataless(flags: u32) -> bool {
    flags & SF_DATALESS != 0
}

/// The flags a file with flags `now` has to get to be as `wanted`. What root set ("system" flags) is taken off, too; what is
/// set is the owner's, which the owner can take off again.
pub fn change(now: u32, wanted: Flags) -> u32 {
    let mut flags = now;
    for (on, user, system) in
        [(wanted.immutable, UF_IMMUTABLE, SF_IMMUTABLE), (wanted.append_only, UF_APPEND, SF_APPEND)]
    {
        if !on {
            flags &= !(user | system);
        } else if flags & (user | system) == 0 {
            flags |= user;
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_flag_stands_in_the_table_once() {
        for (at, (bit, name, _)) in TABLE.iter().enumerate() {
            assert_eq!(bit.count_ones(), 1, "{name}");
            assert!(TABLE[..at].iter().all(|(other, ..)| other < bit), "{name} is out of order");
        }
    }

    #[test]
    fn the_kept_flags_are_those_that_are_read() {
        for (bit, name, standing) in TABLE {
            assert_eq!(read(bit) != Flags::default(), standing == Standing::Kept, "{name}");
        }
        assert!(is_dataless(0x4000_0020) && !is_dataless(0x20));
    }

    proptest! {
        #[test]
        fn what_is_asked_for_is_there_afterwards_and_no_other_flag_has_moved(
            now in any::<u32>(), immutable in any::<bool>(), append_only in any::<bool>()
        ) {
            let wanted = Flags { immutable, append_only };
            let then = change(now, wanted);
            prop_assert_eq!(read(then), wanted);
            let ours = UF_IMMUTABLE | UF_APPEND | SF_IMMUTABLE | SF_APPEND;
            prop_assert_eq!(then & !ours, now & !ours);
            prop_assert_eq!(change(then, wanted), then, "a second time changes nothing");
        }

        #[test]
        fn a_flag_of_root_that_is_wanted_stays_root_s(now in any::<u32>()) {
            let then = change(now | SF_IMMUTABLE, Flags { immutable: true, append_only: false });
            prop_assert_eq!(then & (SF_IMMUTABLE | UF_IMMUTABLE), (now | SF_IMMUTABLE) & (SF_IMMUTABLE | UF_IMMUTABLE));
        }
    }
}
