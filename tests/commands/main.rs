//! The commands beside `keep watch`, as programs: what they print where, and how they end.

mod lab;
mod log;
mod pages;
mod quarantine;
mod recover;
