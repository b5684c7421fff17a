//! The time zone of this machine or of the person's account, as data; what the data means is another's work.
//!
//! Promise: capped reads of regular files only; a zone that cannot be found is [`Zone::Utc`], never an error.
//! Limit: a zone that is set anew while we run is seen at the next start, as in other programs.
//! Source: tzset(3) on `TZ`; timezone(3), localtime(5); RFC 9636 on the format, "Magic Number".

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::ambient::{self, Content};
use crate::relpath::RelPath;

/// Where zones lie by name.
const ZONES: &str = "/usr/share/zoneinfo";
/// The machine's own zone.
const LOCAL: &str = "/etc/localtime";
/// The largest zone has a few kilobytes.
const MAX_BYTES: u64 = 256 << 10;
/// A name or rule longer than this is none.
const MAX_TEXT: usize = 256;

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone {
    /// Coordinated universal time.
    Utc,
    /// A rule as POSIX writes it, such as `CET-1CEST,M3.5.0,M10.5.0/3`; not looked at any closer.
    Posix(String),
    /// A compiled zone.
    Compiled {
        /// Its name, such as `Europe/Prague`, or what it was found as.
        name: String,
        /// The content of its file, which begins as such files do.
        data: Vec<u8>,
    },
}

impl Zone {
    /// The zone that the value of `TZ` names; the machine's own if there is none.
    pub fn local(variable: Option<&OsStr>) -> Self {
        Self::find(variable, Path::new(ZONES), Path::new(LOCAL))
    }

    fn find(variable: Option<&OsStr>, zones: &Path, local: &Path) -> Self {
        let Some(variable) = variable else { return compiled(local, "localtime").unwrap_or(Self::Utc) };
        let Some(text) = variable.to_str().map(|text| text.strip_prefix(':').unwrap_or(text)) else { return Self::Utc };
        if text.is_empty() || text.len() > MAX_TEXT {
            return Self::Utc;
        }
        if text.starts_with('/') {
            return compiled(Path::new(text), text).unwrap_or(Self::Utc);
        }
        let named = RelPath::parse(text.as_bytes()).ok().and_then(|name| {
            let path = zones.join(name.as_path());
            compiled(&path, text).map(|zone| match zone {
                // Under the name that was asked for, whatever it is a link to.
                Self::Compiled { data, .. } => Self::Compiled { name: text.to_owned(), data },
                other => other,
            })
        });
        match named {
            Some(zone) => zone,
            // A rule has an offset.
            None if text.bytes().any(|byte| byte.is_ascii_digit()) => Self::Posix(text.to_owned()),
            None => Self::Utc,
        }
    }
}

/// The zone in this file; its name is what follows `zoneinfo/` in the real path, else `otherwise`.
fn compiled(path: &Path, otherwise: &str) -> Option<Zone> {
    let real: PathBuf = ambient::resolve(path).ok()?;
    let Ok(Content::Bytes(data)) = ambient::read(&real, MAX_BYTES) else { return None };
    if !data.starts_with(b"TZif") {
        return None;
    }
    let real = String::from_utf8_lossy(real.as_os_str().as_bytes()).into_owned();
    let name = real.rsplit_once("zoneinfo/").map_or(otherwise, |(_, name)| name).to_owned();
    Some(Zone::Compiled { name, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variable: &str, zones: &Path) -> Zone {
        Zone::find(Some(OsStr::new(variable)), zones, &zones.join("absent"))
    }

    #[test]
    fn a_name_a_path_and_a_rule_are_told_apart() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let zones = temp.path().canonicalize().expect("a real path").join("zoneinfo");
        std::fs::create_dir_all(zones.join("Europe")).expect("made");
        std::fs::write(zones.join("Europe/Prague"), b"TZif2 data").expect("written");
        std::fs::write(zones.join("README"), b"no zone").expect("written");
        let prague = Zone::Compiled { name: "Europe/Prague".to_owned(), data: b"TZif2 data".to_vec() };
        assert_eq!(of("Europe/Prague", &zones), prague);
        assert_eq!(of(":Europe/Prague", &zones), prague);
        assert_eq!(of(zones.join("Europe/Prague").to_str().expect("UTF-8"), &zones), prague);
        assert_eq!(of("CET-1CEST", &zones), Zone::Posix("CET-1CEST".to_owned()));
        std::os::unix::fs::symlink(zones.join("Europe/Prague"), temp.path().join("localtime")).expect("linked");
        assert_eq!(Zone::find(None, &zones, &temp.path().join("localtime")), prague, "by what the link leads to");
        for none in ["", ":", "README", "../zoneinfo/Europe", "Europe", "Nowhere", "/etc/passwd", "/absent"] {
            assert_eq!(of(none, &zones), Zone::Utc, "{none:?}");
        }
        assert_eq!(of(&"A1".repeat(MAX_TEXT), &zones), Zone::Utc);
        assert_eq!(Zone::find(None, &zones, Path::new("/absent")), Zone::Utc);
    }
}
