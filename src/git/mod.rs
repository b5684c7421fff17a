//! What git would say about the tree, read from its files: no git process is ever started.

pub mod files;
pub mod ignore;
pub mod index;
