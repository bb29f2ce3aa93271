//! Writes manual pages and completions of all programs into a folder: for packagers, behind
//! `cargo xtask pages`. No part of what is installed.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("switchyard-pages: name the folder to write to");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switchyard-pages: cannot write to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in switchyard::pages::all()? {
        let file = folder.join(name);
        std::fs::write(&file, text)?;
        println!("{}", file.display());
    }
    Ok(())
}
