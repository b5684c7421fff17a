//! Where state is kept on this system.

use crate::state_dir::Layout;

/// The layout of this system.
pub(crate) const STATE_LAYOUT: Layout = Layout::Xdg;
