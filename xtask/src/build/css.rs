//! The style sheet: plain CSS with imports, into one small file.

use std::path::Path;

use anyhow::{Result, anyhow};
use lightningcss::bundler::{Bundler, FileProvider};
use lightningcss::stylesheet::{MinifyOptions, ParserOptions, PrinterOptions};
use lightningcss::targets::{Browsers, Targets};

/// Bundles and minifies the style sheet for the oldest browsers that we serve.
///
/// # Errors
/// When a file is missing or isn't CSS: names the file and the place in it, for a missing file those of its import.
pub(crate) fn bundle(entry: &Path) -> Result<String> {
    let version = |major: u32, minor: u32| Some(major << 16 | minor << 8);
    // The first versions with `light-dark()`, nesting, layers and container queries.
    let targets = Targets::from(Browsers {
        chrome: version(123, 0),
        firefox: version(120, 0),
        safari: version(17, 5),
        ..Browsers::default()
    });
    let files = FileProvider::new();
    let mut bundler = Bundler::new(&files, None, ParserOptions::default());
    let mut sheet = bundler.bundle(entry).map_err(|error| anyhow!("{}: {error}", entry.display()))?;
    sheet.minify(MinifyOptions { targets, ..MinifyOptions::default() }).map_err(|error| anyhow!("{error}"))?;
    Ok(sheet.to_css(PrinterOptions { minify: true, targets, ..PrinterOptions::default() })?.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn imports_are_followed_and_modern_css_is_kept() {
        let folder = std::env::temp_dir().join(format!("lazaret-css-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("all.css"),
            "@import './part.css';\n.a { color: light-dark(#fff, #000); .b { margin: 0 } }",
        )
        .unwrap();
        fs::write(folder.join("part.css"), ".part { padding: 0px 0px 0px 0px }").unwrap();
        let css = bundle(&folder.join("all.css")).unwrap();
        assert_eq!(css, ".part{padding:0}.a{color:light-dark(#fff,#000);& .b{margin:0}}");
        fs::write(folder.join("all.css"), "@import './absent.css';").unwrap();
        let error = bundle(&folder.join("all.css")).unwrap_err().to_string();
        assert!(error.contains("No such file") && error.contains("all.css:0:"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
