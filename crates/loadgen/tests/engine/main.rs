//! Tests of the load engine with a fake database that follows a script.

mod ends;
mod faults;
mod honesty;
mod hosts;
mod open_loop;
mod outages;
mod spinning;
mod support;
