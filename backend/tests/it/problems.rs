//! `docs/problems.md` lists the codes that the sources can answer with: each of them, and no other.

use std::{collections::BTreeSet, fs, path::Path};

/// Codes as the sources write them: `code: "…"`, `refused("…"`, and `StatusCode::…, "…"` where a problem is made.
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
            let after_status = text.split("StatusCode::").skip(1).filter_map(|rest| rest.split_once(','));
            let quoted = after_status.filter_map(|(_, rest)| rest.trim_start().strip_prefix('"')?.split('"').next());
            codes.extend(quoted.filter(|text| is_code(text)).map(str::to_owned));
        }
    }
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_lowercase() || sign == b'_')
}

#[test]
fn every_problem_code_is_documented_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/problems.md")).expect("the page");
    let mut codes: BTreeSet<String> = domain::refusal::Code::ALL.iter().map(ToString::to_string).collect();
    codes_in(&root.join("src"), &mut codes);
    assert!(codes.contains("idempotency_key_reused"), "the sources are read");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed: BTreeSet<String> = rows.map(|(code, _)| code.to_owned()).collect();
    let missing: Vec<_> = codes.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/problems.md lacks {missing:?}");
    let stale: Vec<_> = listed.difference(&codes).collect();
    assert!(stale.is_empty(), "docs/problems.md lists what nothing answers: {stale:?}");
}
