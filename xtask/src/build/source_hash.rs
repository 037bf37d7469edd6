//! One name for a set of sources: the same files with the same bytes give the same name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// Hashes the words, then each file's path below `root` and content, folders with all that is in them.
///
/// # Errors
/// When something can't be read.
pub(crate) fn source_hash(root: &Path, paths: &[&str], words: &[&str]) -> Result<String> {
    let mut files = Vec::new();
    for path in paths {
        collect(&root.join(path), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        // Lengths keep neighbours apart: `ab`,`c` is not `a`,`bc`.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    };
    words.iter().for_each(|word| add(word.as_bytes()));
    for file in files {
        add(file.strip_prefix(root)?.as_os_str().as_encoded_bytes());
        add(&fs::read(&file).with_context(|| format!("can't read {}", file.display()))?);
    }
    Ok(hex::encode(hash.finalize()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_path_buf());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_place_and_words_each_change_the_name() {
        let root = std::env::temp_dir().join(format!("lazaret-hash-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/x"), "1").unwrap();
        let first = source_hash(&root, &["a"], &["w"]).unwrap();
        assert_eq!(first, source_hash(&root, &["a"], &["w"]).unwrap());
        assert_ne!(first, source_hash(&root, &["a"], &["v"]).unwrap());
        fs::write(root.join("a/x"), "2").unwrap();
        assert_ne!(first, source_hash(&root, &["a"], &["w"]).unwrap());
        fs::rename(root.join("a/x"), root.join("a/y")).unwrap();
        fs::write(root.join("a/y"), "1").unwrap();
        assert_ne!(first, source_hash(&root, &["a"], &["w"]).unwrap());
        assert!(source_hash(&root, &["missing"], &[]).is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
