"""The verdict: whether these findings let a pipeline go on.

``fail`` if there is a finding at or above ``fail_on`` (with ``gate = "new"``: one that the baseline
lacks); otherwise ``error`` if any log could not be read or judged, because that must never read as pass;
otherwise ``pass``.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainscope.core.finding import Severity
from trainscope.core.settings import FailOn, Settings
from trainscope.report.document import Counts, Document, ErrorEntry, FindingEntry, RunEntry, Verdict
from trainscope.report.text import plural


def severity_of(finding: FindingEntry) -> Severity:
    """Return the finding's severity as an ordered value."""
    return Severity[finding.severity.upper()]


def fails(finding: FindingEntry, fail_on: FailOn, gate: str) -> bool:
    """Tell whether this finding alone fails the gate."""
    if fail_on == "never" or (gate == "new" and finding.status == "known"):
        return False
    return severity_of(finding) >= Severity[fail_on.upper()]


def count(findings: Sequence[FindingEntry]) -> Counts:
    """Count findings by severity."""
    labels = [f.severity for f in findings]
    return Counts(error=labels.count("error"), warning=labels.count("warning"), info=labels.count("info"))


def describe(counts: Counts) -> str:
    """Return ``"1 error, 2 warnings"``, or ``"no findings"``."""
    parts = [
        plural(counts.error, "error") if counts.error else "",
        plural(counts.warning, "warning") if counts.warning else "",
        f"{counts.info} info" if counts.info else "",
    ]
    return ", ".join(p for p in parts if p) or "no findings"


def headline(document: Document) -> str:
    """Return the verdict's status, or ``not_gated`` where findings that would fail a gate were told not to."""
    verdict, counts = document.verdict, document.counts
    ungated = verdict.status == "pass" and verdict.fail_on == "never" and counts.error + counts.warning > 0
    return "not_gated" if ungated else verdict.status


def decide(runs: Sequence[RunEntry], errors: Sequence[ErrorEntry], settings: Settings) -> Verdict:
    """Return the verdict over all runs.

    Parameters
    ----------
    runs : sequence of RunEntry
    errors : sequence of ErrorEntry
        Logs that could not be read or judged.
    settings : Settings
        ``fail_on`` and ``gate`` are used.
    """
    findings = [f for run in runs for f in run.findings]
    failing = [f for f in findings if fails(f, settings.fail_on, settings.gate)]
    if failing:
        which = ", not in the baseline" if settings.gate == "new" else ""
        reason = f"{describe(count(failing))} at or above {settings.fail_on}{which}"
    elif settings.fail_on == "never":
        reason = f"{describe(count(findings))}; findings never fail this gate"
    else:
        below = f" ({describe(count(findings))} in all)" if findings else ""
        which = "new finding" if settings.gate == "new" else "finding"
        reason = f"no {which} at or above {settings.fail_on}{below}"
    if errors:
        reason = f"{plural(len(errors), 'log')} could not be judged; {reason}"
    status = "fail" if failing else "error" if errors else "pass"
    return Verdict.model_validate(
        {"status": status, "fail_on": settings.fail_on, "gate": settings.gate, "reason": reason}
    )
