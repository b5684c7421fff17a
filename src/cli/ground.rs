//! Where a command works: the tree, who we are there, and the state folder that belongs to it.
//!
//! Promise: a process started as root for somebody else is that somebody before anything in the tree is read, and one that
//! has capabilities from its program's file has none by then. The directory's owner and its file system are all that is
//! looked at before. Limit: the directory itself is opened by the path the person gave.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::environment::Environment;
use platform::guardian::Guardian;
use platform::state_dir::{self, LAYOUT, StateDirError, state_dir};
use platform::{Dir, Flags, Root, ambient, flags, privilege};

use crate::git::{self, GitError, Repository, Sources};
use crate::state::{StateError, StateFolder, folder_name};
use crate::text::escaped;
use crate::watch::lock::others::Others;
use crate::watch::report::ReportPath;

use super::exit::{Refusal, RefusalCode, causes};

/// The tree and what belongs to it.
pub struct Ground {
    /// The repository, if the tree is one.
    pub repository: Option<Repository>,
    /// The open tree.
    pub tree: Arc<Root>,
    /// The folder that holds the state of all roots.
    pub state_top: PathBuf,
    /// Whose files state is made of: the user we run as.
    pub owner: u32,
    /// Where git's own settings lie.
    pub sources: Sources,
    /// Who keeps a part of the privilege that was given up.
    pub guardian: Option<Arc<Guardian>>,
}

impl Ground {
    /// Finds the tree around `path`, or around the working directory.
    pub fn find(path: Option<&Path>, environment: &Environment) -> Result<Self, Refusal> {
        Self::at(path, environment, git::discover, |_, _| ()).map(|(ground, ())| ground)
    }

    /// The same; `open` is called while there still is privilege, if there is any: with the open directory and the user we
    /// will be, `None` if that is who we are.
    pub fn find_with<T>(
        path: Option<&Path>,
        environment: &Environment,
        open: impl FnOnce(&Dir, Option<u32>) -> T,
    ) -> Result<(Self, T), Refusal> {
        Self::at(path, environment, git::discover, open)
    }

    /// Takes the directory `path`, or the working directory, by itself, whatever repository it lies in.
    pub fn plain(path: Option<&Path>, environment: &Environment) -> Result<Self, Refusal> {
        Self::at(path, environment, |_| Ok(None), |_, _| ()).map(|(ground, ())| ground)
    }

    fn at<T>(
        path: Option<&Path>,
        environment: &Environment,
        discover: impl Fn(&Path) -> Result<Option<Repository>, GitError>,
        open: impl FnOnce(&Dir, Option<u32>) -> T,
    ) -> Result<(Self, T), Refusal> {
        let start = path.map_or_else(|| environment.directory.clone(), |path| environment.directory.join(path));
        let (dir, owner) = Dir::open_ambient(&start)
            .and_then(|dir| {
                let owner = dir.own_stat()?.uid;
                Ok((dir, owner))
            })
            .map_err(|error| no_root(&start, &causes(&error)))?;
        let other = works_for(owner, environment)?;
        let user = other.map(|(uid, _)| uid);
        let opened = open(&dir, user);
        drop(dir);
        // Before, since a program with capabilities may be dumpable as it starts (`fs.suid_dumpable`), and is to be closed when
        // it has none any more; after, since becoming somebody else sets that anew.
        let harden = || privilege::harden().map_err(|error| no_privilege(&causes(&error)));
        harden()?;
        give_up(other)?;
        harden()?;
        let (repository, tree) = tree_at(&start, discover).map_err(|refusal| match user {
            Some(user) => of_user(refusal, user, environment),
            None => refusal,
        })?;
        if privilege::is_root() {
            is_roots(&tree, repository.as_ref())?;
        }
        let home = home(user, environment);
        let state_top = state_dir(
            LAYOUT,
            state_dir::Environment {
                keep_state_dir: environment.bytes("KEEP_STATE_DIR"),
                xdg_state_home: environment.bytes("XDG_STATE_HOME"),
                home: home.as_deref().map(Path::as_os_str),
            },
        )
        .map_err(|error| no_state(&error))?;
        let sources = Sources {
            home,
            xdg_config_home: environment.absolute("XDG_CONFIG_HOME").map(Path::to_path_buf),
            global: environment.absolute("GIT_CONFIG_GLOBAL").map(Path::to_path_buf),
            system: vec![PathBuf::from("/etc/gitconfig")],
        };
        let owner = user.unwrap_or(environment.euid);
        Ok((Self { repository, tree: Arc::new(tree), state_top, owner, sources, guardian: None }, opened))
    }

    /// The same directory by itself, whatever repository it is.
    pub fn without_repository(&self) -> Self {
        Self {
            repository: None,
            tree: Arc::clone(&self.tree),
            state_top: self.state_top.clone(),
            owner: self.owner,
            sources: self.sources.clone(),
            guardian: self.guardian.clone(),
        }
    }

    /// Finds the repository of the tree again, after its control files were put back.
    pub fn look_again(&mut self) -> Result<(), Refusal> {
        let top = self.tree.path();
        let found = git::discover(top).map_err(|error| not_found(top, &error))?;
        self.repository = found.filter(|repository| repository.top == top);
        Ok(())
    }

    /// Who may make files of the tree immutable, if we may have that done.
    pub fn flags(&self) -> Option<Arc<dyn Flags>> {
        let guardian = self.guardian.as_ref().filter(|guardian| guardian.may_flag());
        guardian.map(|guardian| Arc::clone(guardian) as Arc<dyn Flags>).or_else(flags::in_process)
    }

    /// The journals of other watches.
    pub fn others(&self) -> Others {
        Others::beside(&self.state_top, &folder_name(self.tree.path(), self.tree.id()), self.owner)
    }

    /// The tree's path, for people.
    pub fn shown(&self) -> String {
        escaped(self.tree.path().as_os_str().as_bytes())
    }

    /// The tree's path, for JSON.
    pub fn text(&self) -> String {
        ReportPath::new(self.tree.path().as_os_str().as_bytes().to_vec()).text()
    }

    /// Opens the state folder of this tree, and makes it if there is none.
    pub fn state(&self) -> Result<StateFolder, Refusal> {
        StateFolder::open(&self.state_top, self.owner, self.tree.path(), self.tree.id())
            .map_err(|error| bad_state(&error))
    }

    /// The state folder of this tree, if there is one.
    pub fn existing_state(&self) -> Result<Option<StateFolder>, Refusal> {
        StateFolder::existing(&self.state_top, self.owner, self.tree.path(), self.tree.id())
            .map_err(|error| bad_state(&error))
    }
}

/// Finds the repository around a directory, and opens the tree.
fn tree_at(
    start: &Path,
    discover: impl Fn(&Path) -> Result<Option<Repository>, GitError>,
) -> Result<(Option<Repository>, Root), Refusal> {
    let repository = discover(start).map_err(|error| not_found(start, &error))?;
    let top = match &repository {
        Some(repository) => repository.top.clone(),
        None => ambient::resolve(start).map_err(|error| no_root(start, &causes(&error)))?,
    };
    let tree = Root::open(&top).map_err(|error| no_root(&top, &causes(&error)))?;
    Ok((repository, tree))
}

/// What failed as the user root works for: root can read the directory, so it must be said who cannot.
fn of_user(refusal: Refusal, user: u32, environment: &Environment) -> Refusal {
    let is_named = environment.text("SUDO_UID").is_some_and(|text| text.parse() == Ok(user));
    let why = if is_named { "named by SUDO_UID" } else { "the owner of the directory" };
    Refusal::new(
        refusal.code,
        format!("as user {user} ({why}): {}", refusal.message),
        "root works for that user only: name a tree that user can reach, or start it as the user whose tree it is",
    )
}

/// The user root works for, and the group. `None` if we are not root, or root works for itself.
fn works_for(owner: u32, environment: &Environment) -> Result<Option<(u32, u32)>, Refusal> {
    if !privilege::is_root() {
        return Ok(None);
    }
    let (uid, gid) = (environment.text("SUDO_UID"), environment.text("SUDO_GID"));
    let sudo = uid.as_deref().zip(gid.as_deref());
    let main_group = |uid: u32| privilege::user(uid).ok().flatten().map(|user| user.gid);
    match privilege::invoker(sudo, owner, main_group) {
        None if owner != 0 => Err(no_privilege("the owner of the tree is not in the user database")),
        other => Ok(other),
    }
}

/// Root, working for itself, has to do with nobody else's tree: whose it is, chooses what is read. It was to become them.
fn is_roots(tree: &Root, repository: Option<&Repository>) -> Result<(), Refusal> {
    let folders =
        repository.into_iter().flat_map(|repository| [repository.git_dir.as_path(), repository.common_dir.as_path()]);
    for folder in std::iter::once(tree.path()).chain(folders) {
        let stat = Dir::open_ambient(folder).and_then(|dir| dir.own_stat());
        if stat.map_err(|error| no_root(folder, &causes(&error)))?.uid != 0 {
            let shown = escaped(folder.as_os_str().as_bytes());
            return Err(no_privilege(&format!("{shown} is not root's, and the directory it was started in is")));
        }
    }
    Ok(())
}

/// Gives up all privilege: becomes that user, or, without being root, has no capability any more.
fn give_up(other: Option<(u32, u32)>) -> Result<(), Refusal> {
    match other {
        Some((uid, gid)) => privilege::drop_to(uid, gid),
        None if privilege::is_root() => Ok(()),
        None => privilege::drop_capabilities(),
    }
    .map_err(|error| no_privilege(&causes(&error)))
}

/// The home of the user we are now: `HOME`, unless that is still root's.
fn home(user: Option<u32>, environment: &Environment) -> Option<PathBuf> {
    let named = environment.absolute("HOME").map(Path::to_path_buf);
    let Some(uid) = user else { return named };
    let is_own =
        |home: &PathBuf| Dir::open_ambient(home).and_then(|dir| dir.own_stat()).is_ok_and(|stat| stat.uid == uid);
    named.filter(is_own).or_else(|| privilege::home_of(uid).ok().flatten())
}

fn no_root(path: &Path, reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Root,
        format!("{}: {reason}", escaped(path.as_os_str().as_bytes())),
        "name a directory you can read, or start in one",
    )
}

fn not_found(start: &Path, error: &GitError) -> Refusal {
    let hint = match error {
        GitError::Bare { .. } | GitError::InsideGitDir { .. } => {
            "start in a working tree, or name one: keep watch PATH"
        }
        GitError::Broken { .. } => "mend or remove the .git there, or name another directory",
        _ => "name a directory you can read: keep watch PATH",
    };
    Refusal::new(RefusalCode::Root, format!("{}: {}", escaped(start.as_os_str().as_bytes()), causes(error)), hint)
}

fn no_privilege(reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Privilege,
        format!("privilege could not be given up: {reason}"),
        "start it as the user the tree belongs to",
    )
}

fn no_state(error: &StateDirError) -> Refusal {
    Refusal::new(RefusalCode::Journal, causes(error), "set HOME, or KEEP_STATE_DIR to an absolute path")
}

fn bad_state(error: &StateError) -> Refusal {
    Refusal::new(
        RefusalCode::Journal,
        causes(error),
        "the state folder must be a directory of your own that nobody else can write; KEEP_STATE_DIR chooses another place",
    )
}
