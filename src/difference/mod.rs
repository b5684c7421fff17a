//! difference.
