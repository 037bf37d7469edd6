//! Links between the repository's documents: the file is there, and so is the heading.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::checkout::Checkout;

/// Folders that hold no documents of ours.
const NOT_OURS: [&str; 4] = ["target", "node_modules", "book", ".git"];

/// Follows every relative link of every Markdown file. Addresses of other places are not tried: no network is needed.
///
/// # Errors
/// With each link that leads nowhere.
pub(super) fn check(checkout: &Checkout) -> Result<()> {
    let mut documents = Vec::new();
    collect(checkout.root(), &mut documents)?;
    documents.sort();
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document)?;
        for target in targets(&text) {
            if !leads_somewhere(document, &text, target)? {
                let document = document.strip_prefix(checkout.root())?.display();
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links that lead nowhere:\n    {}", broken.join("\n    "));
    }
    Ok(())
}

/// Makes sure that the book's table of contents names every document below `docs`: mdBook passes over what it does not.
///
/// # Errors
/// With each document that the table of contents lacks.
pub(super) fn all_in_book(docs: &Path) -> Result<()> {
    let contents = docs.join("SUMMARY.md");
    let text = fs::read_to_string(&contents)?;
    let listed: BTreeSet<PathBuf> = targets(&text).into_iter().map(|target| docs.join(target)).collect();
    let mut documents = Vec::new();
    collect(docs, &mut documents)?;
    documents.retain(|document| *document != contents && !listed.contains(document));
    if !documents.is_empty() {
        documents.sort();
        bail!(
            "{} does not list {}",
            contents.display(),
            documents.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(())
}

fn collect(folder: &Path, documents: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                collect(&path, documents)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            documents.push(path);
        }
    }
    Ok(())
}

/// The targets of a document's links and pictures, outside code.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for line in prose(text) {
        // Between backticks is code: every second part.
        for part in line.split('`').step_by(2) {
            for rest in part.split("](").skip(1) {
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                targets.push(target.trim_matches(['<', '>']));
            }
        }
    }
    targets
}

/// The lines of a document that are in no fenced block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn leads_somewhere(document: &Path, text: &str, target: &str) -> Result<bool> {
    let elsewhere = ["http://", "https://", "mailto:"].iter().any(|start| target.starts_with(start));
    if elsewhere {
        return Ok(true);
    }
    let (path, heading) = target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    if path.is_empty() {
        return Ok(heading.is_none_or(|heading| headings(text).contains(heading)));
    }
    let file = document.parent().unwrap_or(Path::new("")).join(path);
    match heading {
        Some(heading) if file.is_file() => Ok(headings(&fs::read_to_string(file)?).contains(heading)),
        _ => Ok(file.exists()),
    }
}

/// The names by which a document's headings are linked: lower case, hyphens for blanks, no other signs.
fn headings(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'));
            kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_pictures_are_found_and_code_is_not() {
        let text = "See [a](a.md), ![b](b.png \"title\") and `[c](c.md)`.\n```\n[d](d.md)\n```\n[e](<e.md#x>)";
        assert_eq!(targets(text), ["a.md", "b.png", "e.md#x"]);
    }

    #[test]
    fn a_heading_is_linked_as_forges_link_it() {
        let found = headings("# Keeping it fast!\n## `cargo xtask test` (all)\n```\n# not a heading\n```\n");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["cargo-xtask-test-all", "keeping-it-fast"]);
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_told() {
        let folder = std::env::temp_dir().join(format!("lazaret-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("b.md"), "# There\n").unwrap();
        let document = folder.join("a.md");
        let leads = |target: &str| leads_somewhere(&document, "# Here\n", target).unwrap();
        assert!(leads("b.md") && leads("b.md#there") && leads("#here") && leads("https://example.org/x"));
        assert!(!leads("c.md") && !leads("b.md#gone") && !leads("#gone"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_document_that_the_book_passes_over_is_told() {
        let folder = std::env::temp_dir().join(format!("lazaret-book-{}", std::process::id()));
        fs::create_dir_all(folder.join("adr")).unwrap();
        fs::write(folder.join("SUMMARY.md"), "- [One](adr/0001.md)\n").unwrap();
        fs::write(folder.join("adr/0001.md"), "# One\n").unwrap();
        assert!(all_in_book(&folder).is_ok());
        fs::write(folder.join("adr/0002.md"), "# Two\n").unwrap();
        assert!(all_in_book(&folder).unwrap_err().to_string().ends_with("adr/0002.md"));
        fs::remove_dir_all(folder).unwrap();
    }
}
