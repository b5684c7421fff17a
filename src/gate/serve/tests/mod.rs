//! The loop with everything around it scripted: the terminal, the files, the books; clients over real sockets.

mod asking;
mod clients;
mod ending;
mod lab;
mod trouble;
