//! Which accelerator should we build, and how do we train on it?
//!
//! The rooms, from the ground up; each may use only those above it in this list
//! (`tests/tidy.rs` enforces it). ARCHITECTURE.md draws the path of data between them.

pub mod units;

pub mod graph;

pub mod model;

pub mod hardware;

pub mod parallel;

pub mod estimate;

pub mod plan;

pub mod schedule;

pub mod profile;

pub mod placement;

pub mod strategy;

pub mod search;

pub mod compare;

pub mod report;

pub mod certify;

pub mod input;

pub mod cli;
