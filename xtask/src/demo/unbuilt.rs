//! Parts of the demo's result that have no product behind them yet: there, and only there, `null` is an honest answer.

/// JSON pointers into the result, each with what it waits for. Empty once incidents, rehearsals and the signed log stand.
pub(super) const UNBUILT: [(&str, &str); 4] = [
    ("/exit_conditions/poison_quarantined", "computed by incidents"),
    ("/exit_conditions/healthy_advancing", "computed by incidents"),
    ("/exit_conditions/rehearsal_clean", "computed by rehearsals"),
    ("/audit/verified", "the log is not sealed and signed yet"),
];
