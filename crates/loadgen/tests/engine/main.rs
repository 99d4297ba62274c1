//! The engine against a database of our own that does what it is asked.

mod ends;
mod faults;
mod honesty;
mod hosts;
mod open_loop;
mod outages;
mod spinning;
mod support;
