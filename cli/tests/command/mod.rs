//! Runs `phaze` as a user does.

use std::io::Write;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

/// Runs `phaze` with `input` on its standard input.
pub fn phaze(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_phaze"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read on.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
