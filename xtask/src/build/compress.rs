//! Compressed copies beside what the browser loads, made once so that no request waits for them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Sizes of one file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) raw: usize,
    pub(crate) gzip: usize,
    pub(crate) brotli: usize,
}

/// Writes `file.gz` and `file.br`.
///
/// # Errors
/// When a file can't be read or written.
pub(crate) fn beside(file: &Path) -> Result<Sizes> {
    let raw = fs::read(file)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&raw)?;
    let gzip = gzip.finish()?;
    let mut brotli = Vec::new();
    let settings = brotli::enc::BrotliEncoderParams { quality: 11, lgwin: 22, ..Default::default() };
    brotli::BrotliCompress(&mut raw.as_slice(), &mut brotli, &settings)?;
    fs::write(with(file, ".gz"), &gzip)?;
    fs::write(with(file, ".br"), &brotli)?;
    Ok(Sizes { raw: raw.len(), gzip: gzip.len(), brotli: brotli.len() })
}

fn with(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
