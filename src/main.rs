//! The `phaze` command; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    phaze::cli::main()
}
