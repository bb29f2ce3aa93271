//! Writes the manual page and the shells' completions into a folder: for packagers, behind
//! `cargo xtask pages`. No part of what is installed.

use std::path::PathBuf;
use std::process::ExitCode;

use ipvsadm::pages::ALL;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("ipvsadm-pages: name the folder to write to");
        return ExitCode::from(2);
    };
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("ipvsadm-pages: cannot make {}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    for (name, page) in ALL {
        let file = folder.join(name);
        if let Err(error) = std::fs::write(&file, page()) {
            eprintln!("ipvsadm-pages: cannot write {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
        println!("{}", file.display());
    }
    ExitCode::SUCCESS
}
