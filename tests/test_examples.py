"""Each example log gives the findings that its label says, and a healthy one gives none."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from trainscope.core.settings import Settings
from trainscope.report.document import FindingEntry
from trainscope.report.pipeline import analyze

EXAMPLES = Path(__file__).parents[1] / "examples"
EXPECTED = json.loads((EXAMPLES / "expected.json").read_text(encoding="utf-8"))
# tbparse uses pandas in a way that pandas is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
LOGS = [(run, file) for run, label in EXPECTED.items() for file in label["files"]]


def findings(file: str) -> list[FindingEntry]:
    """The findings of one log that a gate would fail on by default."""
    if "tfevents" in file and importlib.util.find_spec("tbparse") is None:
        pytest.skip("needs the tensorboard extra")
    document = analyze([str(EXAMPLES / "logs" / file)], Settings()).document
    assert not document.errors
    return [f for run in document.runs for f in run.findings if f.severity != "info"]


def starts_within(finding: FindingEntry, expected: dict[str, int | str]) -> bool:
    return (
        finding.detector == expected["detector"]
        and finding.start_step is not None
        and expected["start"] <= finding.start_step <= expected["end"]
    )


@pytest.mark.parametrize(("run", "file"), LOGS, ids=[file for _, file in LOGS])
def test_a_log_gives_the_findings_of_its_label_and_no_others(run: str, file: str) -> None:
    label = EXPECTED[run]
    found = findings(file)
    missing = [e for e in label["expect"] if not any(starts_within(f, e) for f in found)]
    surplus = [
        (f.detector, f.start_step, f.message)
        for f in found
        if f.detector not in label["allow"] and not any(starts_within(f, e) for e in label["expect"])
    ]
    assert (missing, surplus) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("run", EXPECTED)
def test_the_layout_of_a_log_does_not_change_what_is_found(run: str) -> None:
    """Steps may differ by one: Lightning counts from 0."""
    seen = {file: [(f.detector, f.metric) for f in findings(file)] for file in EXPECTED[run]["files"]}
    first = next(iter(seen.values()))
    assert seen == dict.fromkeys(seen, first)
