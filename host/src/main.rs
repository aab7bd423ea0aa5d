//! The `tidegate` command. All of it is in the library.

fn main() -> std::process::ExitCode {
    tidegate::cli::main(std::env::args_os())
}
