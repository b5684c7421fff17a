//! The seams of `platform`, each with all its implementations that this machine has.

mod root;
