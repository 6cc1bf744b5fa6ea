//! The search against itself without its shortcuts: bounds, pruning, threads, kills.

#[path = "search/laws.rs"]
mod laws;
#[path = "search/process.rs"]
mod process;
