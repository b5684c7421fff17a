//! Finds the repository a directory lies in, by reading.
//!
//! Promise: ends at the file system's root, whatever links and pointers say; what looks like a repository and is none is
//! an error, never taken for "no repository", because that would leave git's files unprotected.
//! Source: gitrepository-layout(5); `setup_git_directory_gently` of git for the order.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::ambient::{self, Content};
use platform::{FileType, FsError};

/// Bytes a `.git` file or a `commondir` may have.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// A repository with a working tree. All paths are without symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of the working tree.
    pub top: PathBuf,
    /// The git directory of this working tree.
    pub git_dir: PathBuf,
    /// The git directory all working trees share; the same one in an ordinary repository.
    pub common_dir: PathBuf,
}

/// Why no repository could be made out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// A repository without a working tree.
    #[error("{} is a bare repository; there is no working tree to watch", shown(.path))]
    Bare {
        /// Its directory.
        path: PathBuf,
    },
    /// The directory lies in a git directory.
    #[error("{} is a git directory, not a working tree", shown(.path))]
    InsideGitDir {
        /// The git directory.
        path: PathBuf,
    },
    /// `.git` or `commondir` leads nowhere.
    #[error("{} is no repository: {reason}", shown(.path))]
    Broken {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Something could not be looked at.
    #[error(transparent)]
    Read(#[from] FsError),
}

fn shown(path: &Path) -> String {
    crate::text::escaped(path.as_os_str().as_bytes())
}

/// The repository whose working tree `start` lies in; `None` if there is none up to the file system's root.
pub fn discover(start: &Path) -> Result<Option<Repository>, GitError> {
    let start = ambient::resolve(start)?;
    for top in start.ancestors() {
        let link = top.join(".git");
        match ambient::kind(&link)? {
            Some(_) => return repository(top, &link).map(Some),
            None if is_git_dir(top)? => {
                let path = top.to_path_buf();
                let inside = top.file_name() == Some(OsStr::new(".git")) || top.join("commondir").exists_as_file()?;
                return Err(if inside { GitError::InsideGitDir { path } } else { GitError::Bare { path } });
            }
            None => {}
        }
    }
    Ok(None)
}

trait ExistsAsFile {
    fn exists_as_file(&self) -> Result<bool, FsError>;
}

impl ExistsAsFile for PathBuf {
    fn exists_as_file(&self) -> Result<bool, FsError> {
        Ok(ambient::kind_following(self)? == Some(FileType::Regular))
    }
}

fn repository(top: &Path, link: &Path) -> Result<Repository, GitError> {
    let broken = |reason| GitError::Broken { path: link.to_path_buf(), reason };
    // A loop of links cannot be resolved either, and ends here.
    let found = ambient::resolve(link).map_err(|_| broken("the link leads nowhere"))?;
    let git_dir = match ambient::kind(&found)? {
        Some(FileType::Directory) => found,
        Some(FileType::Regular) => {
            let text = pointer(&found)?.ok_or_else(|| broken("the file is too long"))?;
            let target = text.strip_prefix(b"gitdir: ").ok_or_else(|| broken("the file does not say `gitdir: `"))?;
            let from = found.parent().unwrap_or(top);
            ambient::resolve(&from.join(OsStr::from_bytes(target)))
                .map_err(|_| broken("its `gitdir:` leads nowhere"))?
        }
        _ => return Err(broken("it is neither a directory nor a file")),
    };
    let common = git_dir.join("commondir");
    let common_dir = match ambient::kind(&common)? {
        None => git_dir.clone(),
        Some(_) => {
            let broken = |reason| GitError::Broken { path: common.clone(), reason };
            let text = pointer(&common)?.ok_or_else(|| broken("the file is too long"))?;
            ambient::resolve(&git_dir.join(OsStr::from_bytes(&text))).map_err(|_| broken("it leads nowhere"))?
        }
    };
    if ambient::kind(&git_dir.join("HEAD"))?.is_none() {
        return Err(GitError::Broken { path: git_dir, reason: "there is no HEAD" });
    }
    if ambient::kind_following(&common_dir.join("objects"))? != Some(FileType::Directory) {
        return Err(GitError::Broken { path: common_dir, reason: "there is no directory `objects`" });
    }
    Ok(Repository { top: top.to_path_buf(), git_dir, common_dir })
}

/// The text of a file that names a directory, without line ends; `None` if it is too long.
fn pointer(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    match ambient::read(path, MAX_POINTER_BYTES)? {
        Content::Bytes(mut bytes) => {
            while matches!(bytes.last(), Some(b'\n' | b'\r')) {
                bytes.pop();
            }
            if bytes.contains(&0) {
                return Err(GitError::Broken { path: path.to_path_buf(), reason: "the file has a NUL byte" });
            }
            Ok(Some(bytes))
        }
        Content::TooLarge => Ok(None),
        Content::Absent => Err(GitError::Broken { path: path.to_path_buf(), reason: "it is not a regular file" }),
    }
}

fn is_git_dir(path: &Path) -> Result<bool, FsError> {
    let directory = |name| Ok::<_, FsError>(ambient::kind_following(&path.join(name))? == Some(FileType::Directory));
    Ok(ambient::kind(&path.join("HEAD"))?.is_some() && directory("refs")? && directory("objects")?)
}
