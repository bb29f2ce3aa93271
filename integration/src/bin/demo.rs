//! The program behind `cargo xtask demo`.

use std::process::ExitCode;

use clap::Parser;

/// Shows a director at work: real HTTP requests from a client through its virtual address to
/// three servers, by NAT, tunnel and direct routing, over IPv4 and IPv6, in network namespaces
/// that are gone afterwards.
///
/// Exit code 0 only when every request of every scenario was answered.
#[derive(Parser)]
#[command(name = "demo", version)]
struct Arguments {
    /// Requests per method and family
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    requests: u64,
}

fn main() -> ExitCode {
    match integration::demo::run(Arguments::parse().requests) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
