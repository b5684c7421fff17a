//! What this machine offers: backends that work, file systems that can be mounted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use platform::event::EventSource;

use super::fixture::{PRIVILEGED, groups};

/// Whether a thing is there. Panics if it is expected and is not.
pub fn present(thing: &str, there: bool) -> bool {
    let expected = std::env::var("KEEP_EXPECT").is_ok_and(|list| list.split(',').any(|name| name == thing));
    assert!(there || !expected, "{thing} is expected here and missing");
    if !there {
        println!("pass over {thing}: not here");
    }
    there
}

/// The backends that work.
pub fn backends() -> Vec<&'static str> {
    let works = |source: &dyn EventSource| match source.probe() {
        Ok(()) => present(source.name(), true),
        Err(error) => {
            println!("{error}");
            present(source.name(), false)
        }
    };
    let mut found: Vec<_> =
        platform::backends().iter().filter(|source| works(source.as_ref())).map(|source| source.name()).collect();
    if is_root() && present("privileged", groups(Path::new("/")).is_some()) {
        found.insert(0, PRIVILEGED);
    }
    found
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("our own directory");
}

/// The type of the file system a path lies on.
pub fn type_of(path: &Path) -> String {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let best = mounts.filter(|(point, _)| path.starts_with(point)).max_by_key(|(point, _)| point.len());
    best.map_or("disk", |(_, kind)| kind).to_owned()
}

/// A file system of our own; unmounted when dropped.
pub struct Mounted {
    point: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(&self.point));
    }
}

/// Whether the command could be run and succeeded.
pub fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Mounted {
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// A file system of this type in a file.
    pub fn image(kind: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let (image, point) = (dir.path().join("image"), dir.path().join("mounted"));
        fs::create_dir(&point).expect("a mount point");
        let make = || {
            let file = fs::File::create(&image).expect("an image");
            file.set_len(512 * 1024 * 1024).expect("a sparse file");
            is_root()
                && run(Command::new(format!("mkfs.{kind}")).arg(&image))
                && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point))
        };
        present(kind, make()).then(|| Self { point, _dir: dir })
    }

    /// An overlay over a tmpfs, with directories in its lower layer.
    pub fn overlay() -> Option<Self> {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let [lower, upper, work, point] = ["lower", "upper", "work", "mounted"].map(|name| dir.path().join(name));
        for dir in [&lower, &upper, &work, &point] {
            fs::create_dir(dir).expect("a directory");
        }
        for backend in backends() {
            let deep = lower.join(backend).join("old/deep");
            fs::create_dir_all(&deep).expect("a lower directory");
            fs::write(deep.join(".env"), "lower").expect("a lower file");
        }
        let options = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        let mount =
            || is_root() && run(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&point));
        present("overlay", mount()).then(|| Self { point, _dir: dir })
    }

    /// The directory `dir` once more at `point`, which must exist.
    pub fn bind(dir: &Path, point: &Path) -> Option<Self> {
        let bound = is_root() && run(Command::new("mount").arg("--bind").arg(dir).arg(point));
        present("bind", bound)
            .then(|| Self { point: point.to_owned(), _dir: tempfile::tempdir().expect("a directory") })
    }
}
