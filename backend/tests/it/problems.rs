//! `docs/problems.md` lists every code that the sources can answer with.

use std::{collections::BTreeSet, fs, path::Path};

/// Codes as the sources write them: `code: "…"` and `refused("…"`.
fn codes_in(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            codes_in(&path, codes);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            for before in ["code: \"", "refused(\"", "refused(\n            \""] {
                let quoted = text.split(before).skip(1).filter_map(|rest| rest.split('"').next());
                codes.extend(quoted.filter(|code| !code.is_empty()).map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_problem_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/problems.md")).expect("the page");
    let mut codes: BTreeSet<String> = domain::refusal::Code::ALL.iter().map(ToString::to_string).collect();
    codes_in(&root.join("src"), &mut codes);
    assert!(codes.contains("idempotency_key_reused"), "the sources are read");
    let missing: Vec<_> = codes.iter().filter(|code| !page.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "docs/problems.md lacks {missing:?}");
}
