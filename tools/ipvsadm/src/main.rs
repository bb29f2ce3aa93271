//! ipvsadm, for the Switchyard director.

use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use director::control::DEFAULT_SOCKET;
use ipvsadm::commands::Session;
use ipvsadm::failure::Failure;
use ipvsadm::names::Names;
use ipvsadm::order::{Order, parse};
use ipvsadm::restore::{BUFFER, restore, restore_atomically};

/// Written at a time: what a pipe holds.
const OUTPUT: usize = 64 * 1024;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut output = BufWriter::with_capacity(OUTPUT, io::stdout().lock());
    let outcome = run(&words, &mut output);
    // What was listed before a failure comes before its message.
    let flushed = output.flush();
    let code = match (outcome, flushed) {
        (Err(failure), _) => {
            if !failure.message.is_empty() {
                complain(&failure.message);
            }
            failure.code
        }
        (Ok(_), Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write: {error}"));
            1
        }
        (Ok(code), _) => code,
    };
    ExitCode::from(code)
}

/// `eprintln!` panics when standard error is closed; then nobody is there to be told.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

fn run(words: &[String], output: &mut dyn Write) -> Result<u8, Failure> {
    let names = Names::of_the_system();
    let order = parse(words, &names)?;
    let socket = std::env::var_os("SWITCHYARD_SOCKET").filter(|path| !path.is_empty());
    let socket = socket.map_or_else(|| PathBuf::from(DEFAULT_SOCKET), PathBuf::from);
    let explain = io::stderr().is_terminal();
    let mut session = Session { socket, output, explain, names, client: None };
    if let Order::Restore { atomic } = order {
        let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
        return match atomic {
            true => restore_atomically(&mut session, &mut input),
            false => restore(&mut session, &mut input, &mut io::stderr()),
        };
    }
    session.carry_out(order).map(|()| 0)
}
