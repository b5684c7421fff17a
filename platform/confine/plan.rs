//! What of a confinement this system can hold, decided from what it offers: values only.
//!
//! Promise: an axis counts as held only by a means that is in force whatever the process does afterwards, and what no means
//! holds is named. Limit: names, sizes and times outside the folder can be seen by whoever is confined on Linux; neither
//! means covers stat(2) there. Source: landlock(7) and its list of interface versions, seccomp(2), sandbox_init(3).

/// What this system has to confine a process with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Version of Landlock's interface; `None` without it.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered.
    pub filter: bool,
    /// Whether Seatbelt takes a profile from this process: one that is in a sandbox already gets no other.
    pub seatbelt: bool,
    /// Whether the system is one that has such means; what none of a kind has is missing and cannot be asked for.
    pub is_expected: bool,
}

/// What holds an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Landlock.
    Landlock,
    /// The filter of system calls.
    Filter,
    /// Seatbelt.
    Seatbelt,
}

impl Means {
    /// Every one.
    pub const ALL: [Means; 3] = [Means::Landlock, Means::Filter, Means::Seatbelt];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Means::Landlock => "landlock",
            Means::Filter => "filter",
            Means::Seatbelt => "seatbelt",
        }
    }

    /// The means of this exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.name() == name)
    }
}

/// One thing that a confined process is kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Reading and listing outside the folder.
    Read,
    /// Writing, making and removing outside the folder.
    Write,
    /// Moving and linking into the folder or out of it.
    Move,
    /// Cutting a file outside short.
    Truncate,
    /// Bits, owners, times and attributes of files outside.
    Attributes,
    /// Running another program, or another copy of this one.
    Execute,
    /// Making memory executable that was written.
    Code,
    /// Making devices, FIFOs and sockets.
    Special,
    /// Commands to a device.
    DeviceCommands,
    /// TCP.
    Tcp,
    /// UDP and every other protocol.
    Datagrams,
    /// Sockets of other processes that have a name in no file system.
    AbstractSockets,
    /// Sockets of other processes that have a path.
    NamedSockets,
    /// Signals to other processes.
    Signals,
    /// Tracing other processes and reading their memory.
    Processes,
    /// Mounts, namespaces, keys, BPF, io_uring and what else a kernel offers.
    Kernel,
}

/// An axis, its name, what it keeps from, the version of Landlock from which on it holds, and whether the filter does.
/// Seatbelt holds all but those of [`NOT_BY_SEATBELT`].
type Row = (Axis, &'static str, &'static str, Option<u32>, bool);

/// It has an operation for code of others that is mapped, and none for memory that a process wrote itself.
const NOT_BY_SEATBELT: [Axis; 1] = [Axis::Code];

const TABLE: [Row; 16] = [
    (Axis::Read, "read", "reading outside the folder", Some(1), false),
    (Axis::Write, "write", "writing outside the folder", Some(1), false),
    // The first version refuses every move between two directories, which holds even more.
    (Axis::Move, "move", "moving or linking into the folder or out of it", Some(1), false),
    (Axis::Truncate, "truncate", "cutting short a file outside the folder", Some(3), true),
    (Axis::Attributes, "attributes", "changing bits, owner or times of a file outside the folder", None, true),
    (Axis::Execute, "execute", "running a program", Some(1), true),
    (Axis::Code, "code", "running code that it wrote into its memory", None, true),
    (Axis::Special, "special", "making a device, a FIFO or a socket", Some(1), true),
    (Axis::DeviceCommands, "device_commands", "giving commands to a device", Some(5), true),
    (Axis::Tcp, "tcp", "opening a TCP connection", Some(4), true),
    (Axis::Datagrams, "datagrams", "sending over UDP or another protocol", None, true),
    (Axis::AbstractSockets, "abstract_sockets", "reaching another process by an abstract socket", Some(6), true),
    (Axis::NamedSockets, "named_sockets", "reaching another process by a socket in the file system", Some(9), true),
    (Axis::Signals, "signals", "sending a signal to another process", Some(6), true),
    (Axis::Processes, "processes", "tracing another process or reading its memory", Some(1), true),
    (Axis::Kernel, "kernel", "mounting, making namespaces, or using keys, BPF or io_uring", None, true),
];

impl Axis {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(axis, ..)| *axis)
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|(axis, ..)| *axis == self).expect("every axis has a row")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The axis of this exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|axis| axis.name() == name)
    }

    /// What it keeps a process from, to follow on "keeps it from".
    pub fn what(self) -> &'static str {
        self.row().2
    }

    /// Whether Landlock holds it from this version of its interface on.
    pub fn by_landlock(self, version: u32) -> bool {
        self.row().3.is_some_and(|since| since <= version)
    }

    /// Whether a filter of system calls holds it.
    pub fn by_filter(self) -> bool {
        self.row().4
    }

    /// Whether Seatbelt holds it. There are no abstract sockets and no io_uring on its system, and mounting, devices and the
    /// services that other processes offer by name are denied with all else.
    pub fn by_seatbelt(self) -> bool {
        !NOT_BY_SEATBELT.contains(&self)
    }
}

/// A right that Landlock takes away, by the kernel's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Right {
    Execute,
    WriteFile,
    ReadFile,
    ReadDir,
    RemoveDir,
    RemoveFile,
    MakeChar,
    MakeDir,
    MakeReg,
    MakeSock,
    MakeFifo,
    MakeBlock,
    MakeSym,
    Refer,
    Truncate,
    IoctlDev,
    ResolveUnix,
}

/// A right, the version from which on there is such a right, and whether it is given back below the folder.
const RIGHTS: [(Right, u32, bool); 17] = [
    (Right::Execute, 1, false),
    (Right::WriteFile, 1, true),
    (Right::ReadFile, 1, true),
    (Right::ReadDir, 1, true),
    (Right::RemoveDir, 1, true),
    (Right::RemoveFile, 1, true),
    (Right::MakeChar, 1, false),
    (Right::MakeDir, 1, true),
    (Right::MakeReg, 1, true),
    (Right::MakeSock, 1, false),
    (Right::MakeFifo, 1, false),
    (Right::MakeBlock, 1, false),
    // Moving a symlink needs it; making one is not among the calls that the filter lets through.
    (Right::MakeSym, 1, true),
    (Right::Refer, 2, true),
    (Right::Truncate, 3, true),
    (Right::IoctlDev, 5, false),
    (Right::ResolveUnix, 9, false),
];

/// How a process that works below one folder is confined on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    support: Support,
}

impl Plan {
    /// For what the system has.
    pub const fn new(support: Support) -> Self {
        Self { support }
    }

    /// What the system has.
    pub const fn support(&self) -> Support {
        self.support
    }

    /// Whether these means are in force.
    pub fn uses(&self, means: Means) -> bool {
        match means {
            Means::Landlock => self.support.landlock.is_some(),
            Means::Filter => self.support.filter,
            Means::Seatbelt => self.support.seatbelt,
        }
    }

    /// Whether something holds the axis.
    pub fn holds(&self, axis: Axis) -> bool {
        self.support.landlock.is_some_and(|version| axis.by_landlock(version))
            || (self.support.filter && axis.by_filter())
            || (self.support.seatbelt && axis.by_seatbelt())
    }

    /// What nothing holds.
    pub fn missing(&self) -> Vec<Axis> {
        Axis::all().filter(|&axis| !self.holds(axis)).collect()
    }

    /// Whether all is held that a system of this kind can hold.
    pub fn is_whole(&self) -> bool {
        !self.support.is_expected || self.support.seatbelt || self.missing().is_empty()
    }

    /// The rights taken away everywhere, those given back below the folder among them. Empty without Landlock.
    pub fn handled(&self) -> Vec<Right> {
        self.rights(|_| true)
    }

    /// The rights there are below the folder.
    pub fn below(&self) -> Vec<Right> {
        self.rights(|below| below)
    }

    fn rights(&self, wanted: impl Fn(bool) -> bool) -> Vec<Right> {
        let version = self.support.landlock.unwrap_or(0);
        RIGHTS
            .iter()
            .filter(|(_, since, below)| *since <= version && wanted(*below))
            .map(|(right, ..)| *right)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(landlock: Option<u32>, filter: bool) -> Plan {
        Plan::new(Support { landlock, filter, seatbelt: false, is_expected: true })
    }

    #[test]
    fn with_the_filter_every_version_of_landlock_is_enough_and_none_is_not() {
        for version in 1..=10 {
            assert_eq!(plan(Some(version), true).missing(), [], "version {version}");
            assert!(plan(Some(version), true).is_whole());
        }
        assert_eq!(plan(None, true).missing(), [Axis::Read, Axis::Write, Axis::Move]);
        assert!(!plan(None, true).is_whole());
    }

    #[test]
    fn without_the_filter_each_version_of_landlock_leaves_what_it_does_not_cover() {
        use Axis::*;
        let always = [Attributes, Code, Datagrams, Kernel];
        for (version, more) in [
            (1, &[Truncate, DeviceCommands, Tcp, AbstractSockets, NamedSockets, Signals][..]),
            (2, &[Truncate, DeviceCommands, Tcp, AbstractSockets, NamedSockets, Signals]),
            (3, &[DeviceCommands, Tcp, AbstractSockets, NamedSockets, Signals]),
            (4, &[DeviceCommands, AbstractSockets, NamedSockets, Signals]),
            (5, &[AbstractSockets, NamedSockets, Signals]),
            (6, &[NamedSockets]),
            (7, &[NamedSockets]),
            (8, &[NamedSockets]),
            (9, &[]),
            (10, &[]),
        ] {
            let mut expected = [&always[..], more].concat();
            expected.sort();
            assert_eq!(plan(Some(version), false).missing(), expected, "version {version}");
        }
        assert_eq!(plan(None, false).missing().len(), TABLE.len(), "nothing holds anything");
    }

    #[test]
    fn every_right_a_version_has_is_taken_and_only_what_files_need_is_given_back() {
        for (version, handled, below) in [
            (0, 0, 0),
            (1, 13, 8),
            (2, 14, 9),
            (3, 15, 10),
            (4, 15, 10),
            (5, 16, 10),
            (6, 16, 10),
            (7, 16, 10),
            (8, 16, 10),
            (9, 17, 10),
            (10, 17, 10),
        ] {
            let plan = plan(Some(version), true);
            assert_eq!((plan.handled().len(), plan.below().len()), (handled, below), "version {version}");
            for right in [Right::Execute, Right::MakeChar, Right::MakeBlock, Right::MakeFifo, Right::MakeSock] {
                assert!(!plan.below().contains(&right), "{right:?} is given back");
            }
        }
    }

    #[test]
    fn a_system_that_has_no_such_means_is_asked_for_none_and_holds_nothing() {
        let plan = Plan::new(Support { landlock: None, filter: false, seatbelt: false, is_expected: false });
        assert!(plan.is_whole());
        assert_eq!(plan.missing().len(), TABLE.len());
        assert_eq!(plan.handled(), []);
    }

    #[test]
    fn seatbelt_is_enough_and_what_it_does_not_hold_is_named_all_the_same() {
        let plan = |seatbelt| Plan::new(Support { landlock: None, filter: false, seatbelt, is_expected: true });
        assert!(plan(true).is_whole());
        assert_eq!(plan(true).missing(), [Axis::Code]);
        assert!(!plan(false).is_whole(), "a system that has it, and a process that cannot have it");
    }

    #[test]
    fn a_name_means_its_means() {
        for means in Means::ALL {
            assert_eq!(Means::parse(means.name()), Some(means));
        }
        assert_eq!(Means::parse(""), None);
    }

    #[test]
    fn a_name_means_its_axis() {
        for axis in Axis::all() {
            assert_eq!(Axis::parse(axis.name()), Some(axis));
        }
        assert_eq!(Axis::parse(""), None);
    }
}
