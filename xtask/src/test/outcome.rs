//! What the stages came to, counted from what each test runner says at its end.

use std::time::Duration;

use anyhow::Result;

use crate::say;

/// How many tests a stage ran. A check, like the format's, counts as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Outcome {
    /// One check that passed.
    pub(crate) const CHECK: Self = Self { passed: 1, failed: 0, skipped: 0 };

    /// How many tests came to an end, whichever.
    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }

    /// Reads what nextest or node's runner says at its end; `None` for any other line.
    pub(crate) fn read(line: &str, so_far: Self) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            // Summary [   0.012s] 9 tests run: 8 passed (1 slow), 1 failed, 2 skipped
            ["Summary", ..] => {
                let (_, counts) = line.split_once("run:")?;
                let count = |what: &str| {
                    counts
                        .split(',')
                        .find_map(|part| part.trim().split_once(' ').filter(|(_, rest)| rest.starts_with(what)))
                };
                let number = |what: &str| count(what).and_then(|(number, _)| number.parse().ok()).unwrap_or(0);
                let failed = number("failed") + number("timed out") + number("exec failed");
                Some(Self { passed: number("passed"), failed, skipped: number("skipped") })
            }
            ["#" | "ℹ", "pass", number] => Some(Self { passed: number.parse().ok()?, ..so_far }),
            ["#" | "ℹ", "fail", number] => Some(Self { failed: number.parse().ok()?, ..so_far }),
            ["#" | "ℹ", "skipped", number] => Some(Self { skipped: number.parse().ok()?, ..so_far }),
            _ => None,
        }
    }
}

/// A stage that was carried out.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) result: Result<Outcome>,
}

impl Report {
    /// Whether it found a fault.
    pub(crate) fn failed(&self) -> bool {
        self.result.as_ref().map_or(true, |outcome| outcome.failed > 0)
    }

    /// Whether it carried out no test.
    pub(crate) fn ran_nothing(&self) -> bool {
        self.result.as_ref().is_ok_and(|outcome| outcome.ran() == 0)
    }
}

/// The last lines of a run: each stage with its time, then the counts over all.
pub(crate) fn summary(reports: &[Report]) -> String {
    let mut lines = vec![String::new()];
    let mut all = Outcome::default();
    let mut took = Duration::ZERO;
    for report in reports {
        took += report.took;
        let outcome = report.result.as_ref().map_or(Outcome { failed: 1, ..Outcome::default() }, |outcome| *outcome);
        all.passed += outcome.passed;
        all.failed += outcome.failed;
        all.skipped += outcome.skipped;
        let said = if report.failed() { "FAILED" } else { "ok" };
        lines.push(format!("{:>8}  {said:<6}  {}", say::seconds(report.took), report.name));
    }
    lines.push(format!("{:>8}  in all", say::seconds(took)));
    lines.push(format!("{} passed, {} failed, {} skipped", all.passed, all.failed, all.skipped));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_and_node_are_read() {
        let none = Outcome::default();
        let read = |line: &str| Outcome::read(line, none);
        let outcome = |passed, failed, skipped| Some(Outcome { passed, failed, skipped });
        assert_eq!(read("     Summary [   0.012s] 9 tests run: 9 passed, 0 skipped"), outcome(9, 0, 0));
        assert_eq!(
            read("     Summary [   1.2s] 9/12 tests run: 7 passed (2 slow), 2 failed, 3 skipped"),
            outcome(7, 2, 3)
        );
        assert_eq!(read("     Summary [   1.2s] 1 test run: 0 passed, 1 timed out, 3 skipped"), outcome(0, 1, 3));
        assert_eq!(read("# pass 12"), outcome(12, 0, 0));
        assert_eq!(read("ℹ fail 2"), outcome(0, 2, 0));
        assert_eq!(read("a test that says Summary"), None);
    }

    #[test]
    fn a_failed_stage_is_counted_as_failed_whatever_its_tests_said() {
        let report = |name: &str, result| Report { name: name.to_owned(), took: Duration::from_secs(2), result };
        let text = summary(&[report("format", Ok(Outcome::CHECK)), report("lint", Err(anyhow::anyhow!("no")))]);
        assert!(text.ends_with("1 passed, 1 failed, 0 skipped"), "{text}");
        assert!(text.contains("FAILED  lint"), "{text}");
        let text = summary(&[report("unit", Ok(Outcome { passed: 7, failed: 2, skipped: 1 }))]);
        assert!(text.contains("FAILED  unit") && text.ends_with("7 passed, 2 failed, 1 skipped"), "{text}");
    }
}
