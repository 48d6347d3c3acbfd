from __future__ import annotations

import pytest

from trainscope.core.settings import Settings
from trainscope.report import gate
from trainscope.report.document import ErrorEntry, FindingEntry, RunEntry, Steps

ERROR = ErrorEntry(source="x.csv", reason="cannot be read")


def run_with(*findings: tuple[str, str | None]) -> RunEntry:
    entries = [
        FindingEntry(fingerprint="0", detector="d", severity=s, title="t", message="m", status=status)
        for s, status in findings
    ]
    steps = Steps(first=0, last=1, count=2)
    return RunEntry(id="0", name="r", source="s", format="csv", steps=steps, metrics=[], findings=entries)


@pytest.mark.parametrize(
    ("severity", "fail_on", "status"),
    [
        ("info", "info", "fail"),
        ("info", "warning", "pass"),
        ("info", "error", "pass"),
        ("warning", "info", "fail"),
        ("warning", "warning", "fail"),
        ("warning", "error", "pass"),
        ("error", "warning", "fail"),
        ("error", "error", "fail"),
        ("info", "never", "pass"),
        ("error", "never", "pass"),
    ],
)
def test_a_finding_fails_the_gate_at_or_above_the_threshold(severity, fail_on, status):
    verdict = gate.decide([run_with((severity, None))], [], Settings(fail_on=fail_on))
    assert verdict.status == status


@pytest.mark.parametrize(("finding", "status"), [("new", "fail"), ("known", "pass"), (None, "fail")])
def test_a_gate_on_new_findings_lets_only_known_ones_through(finding, status):
    verdict = gate.decide([run_with(("error", finding))], [], Settings(gate="new"))
    assert verdict.status == status
    assert (
        verdict.reason
        == {
            "fail": "1 error at or above warning, not in the baseline",
            "pass": "no new finding at or above warning (1 error in all)",
        }[status]
    )


def test_a_known_finding_fails_the_gate_on_all():
    assert gate.decide([run_with(("error", "known"))], [], Settings(gate="all")).status == "fail"


@pytest.mark.parametrize("fail_on", ["warning", "never"])
def test_a_log_that_could_not_be_judged_never_passes(fail_on):
    verdict = gate.decide([run_with()], [ERROR], Settings(fail_on=fail_on))
    assert verdict.status == "error"
    assert verdict.reason.startswith("1 log could not be judged")


def test_a_failed_gate_wins_over_a_log_that_could_not_be_judged():
    verdict = gate.decide([run_with(("error", None))], [ERROR], Settings())
    assert verdict.status == "fail"
    assert verdict.reason == "1 log could not be judged; 1 error at or above warning"


@pytest.mark.parametrize(
    ("findings", "fail_on", "reason"),
    [
        ([], "warning", "no finding at or above warning"),
        ([("info", None)], "warning", "no finding at or above warning (1 info in all)"),
        ([("warning", None), ("error", None)], "warning", "1 error, 1 warning at or above warning"),
        ([("warning", None), ("warning", None)], "error", "no finding at or above error (2 warnings in all)"),
        ([("error", None)], "never", "1 error; findings never fail this gate"),
    ],
)
def test_the_reason_says_what_was_counted(findings, fail_on, reason):
    assert gate.decide([run_with(*findings)], [], Settings(fail_on=fail_on)).reason == reason
