//! What is read from real repositories, made with git: where they are, what they configure, ignore and track.

mod configured;
mod discovered;
mod ignored;
mod support;
