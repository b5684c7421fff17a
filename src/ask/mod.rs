//! ask.
