//! `jadoube schema`: the JSON Schemas of the payloads, from the types that write them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Failure, print_with};
use crate::publish;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write one NAME.schema.json a payload into this folder, instead of all as one object to standard output
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let schemas = publish::schemas();
    let Some(folder) = args.out else {
        let all: Map<String, Value> = schemas
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema.to_value()))
            .collect();
        return print_with(|out| {
            serde_json::to_writer_pretty(&mut *out, &all)?;
            writeln!(out)
        });
    };
    fs::create_dir_all(&folder).map_err(|error| unwritable(error, &folder))?;
    for (name, schema) in schemas {
        let path = folder.join(format!("{name}.schema.json"));
        let mut text = serde_json::to_string_pretty(&schema.to_value())?;
        text.push('\n');
        replace(&path, text.as_bytes()).map_err(|error| unwritable(error, &path))?;
    }
    Ok(())
}

/// Puts a whole file in place of the old one, so that a reader never sees half of it.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn unwritable(error: io::Error, path: &Path) -> Failure {
    Failure::failed(error)
        .context(path.display().to_string())
        .advise("Name a folder that you may write to with --out.")
}
