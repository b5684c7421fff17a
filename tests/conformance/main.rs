//! One suite for each seam of `platform`, run for everything this machine offers.

mod events;
