"""Why a run broke, in the document and in every output of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import Judgement
from trainscope.report import html, markdown, terminal
from trainscope.report.build import Judged
from trainscope.report.chapters import MOST_EVENTS, chapters
from trainscope.report.document import Document, RunEntry
from trainscope.report.pipeline import Analysis, analysis_of

AT = 180


def leap(name: str = "run") -> Run:
    """A loss that jumps two steps after the learning rate does."""
    rng = np.random.default_rng(0)
    step = np.arange(300)
    loss = 2.5 * (1.0 + 0.02 * rng.standard_normal(300))
    loss[AT + 2 : AT + 6] = 6.0
    rate = np.full(300, 1e-3)
    rate[AT : AT + 5] = 3e-2
    series = {"train/loss": Series("train/loss", step, loss), "learning_rate": Series("learning_rate", step, rate)}
    return Run(name, f"{name}.csv", "csv", series)


def spike(severity: Severity = Severity.WARNING, **other: object) -> Finding:
    values = {"metric": "train/loss", "start_step": AT + 2, "end_step": AT + 5, "peak_step": AT + 2} | other
    return Finding("spikes", severity, "Loss spike", f"train/loss jumped to 6 at step {AT + 2}.", **values)


def analysed(run: Run, *findings: Finding) -> Analysis:
    return analysis_of([Judged(run, Judgement(findings, ()), ("spikes",))], Settings())


@pytest.fixture
def entry() -> RunEntry:
    return analysed(leap(), spike()).document.runs[0]


def test_the_document_has_the_events_in_order_and_the_incident_they_belong_to(entry):
    assert [(e.step, e.signal, e.stage) for e in entry.story][:1] == [(AT, "learning_rate", "schedule")]
    (incident,) = entry.incidents
    assert (incident.cause, incident.onset, incident.loss_step, incident.lead_steps) == ("schedule", AT, AT + 2, 2)
    assert {e.incident for e in entry.story} == {1}
    assert [e.lead_steps for e in entry.story if e.signal == "learning_rate"] == [2]


def test_what_a_detector_found_is_told_from_what_the_story_saw(entry):
    assert [e.detector for e in entry.story] == [None, "spikes"]


def test_a_healthy_run_has_neither_story_nor_incident():
    document = analysed(leap(), spike(Severity.INFO)).document
    assert document.runs[0].story == []
    assert document.runs[0].incidents == []


def test_the_document_reads_back_and_is_the_same_bytes_again():
    text = analysed(leap(), spike()).document.to_json()
    assert text == analysed(leap(), spike()).document.to_json()
    assert Document.model_validate_json(text).to_json() == text


def test_a_document_without_incidents_is_read_as_before():
    data = json.loads(analysed(leap(), spike()).document.to_json())
    data["schema_version"] = "1.0"
    del data["runs"][0]["incidents"]
    data["runs"][0]["story"] = [
        {"step": 398, "signal": "act_kurtosis", "event": "crossed its baseline", "lead_steps": 14}
    ]
    old = Document.model_validate(data).runs[0]
    assert old.story[0].lead_steps == 14
    assert chapters(old) == []


def test_every_output_for_people_says_why_and_in_which_order():
    analysis = analysed(leap(), spike())
    plain = terminal.render(analysis.document, analysis.runs)
    drawn = terminal.render(analysis.document, analysis.runs, decorated=True, color=True)
    marked = markdown.render(analysis.document, analysis.runs)
    page = html.render(analysis.document, analysis.runs)
    for text in (plain, drawn, marked, page):
        assert "earning rate rose 30-fold from 0.001 to 0.03" in text.replace("\n            ", " ")
        assert "2 steps after the first sign" in text.replace("\n            ", " ")
    assert plain.index("rose 30-fold", plain.index("schedule   ")) < plain.index("loss        loss jumped")
    assert "| 180 | schedule |" in marked
    assert '<span class="stage schedule">schedule</span>' in page


def test_an_incident_that_says_no_more_than_its_finding_is_left_out():
    """One sign and no cause: the finding has said it all."""
    step = np.arange(300)
    shifted = Series("train/loss", step, np.where(step < 200, 2.0, 2.5))
    run = Run("r", "r.csv", "csv", {"train/loss": shifted})
    shift = Finding("divergence", Severity.ERROR, "Loss diverges", "train/loss rises.", "train/loss", start_step=290)
    entry = analysed(run, shift).document.runs[0]
    assert len(entry.incidents) == 1
    assert chapters(entry) == []


def test_many_signs_are_cut_and_the_loss_is_among_those_shown(entry):
    event = entry.story[0]
    many = [event.model_copy(update={"signal": f"signal_{i}"}) for i in range(20)]
    long = entry.model_copy(update={"story": [*many, entry.story[-1]]})
    (chapter,) = chapters(long)
    assert len(chapter.events) == MOST_EVENTS
    assert chapter.more == 21 - MOST_EVENTS
    assert chapter.events[-1][1] == "loss"


def test_names_from_a_log_are_harmless_in_a_story(hostile):
    finding = Finding(
        "non_finite_origin", Severity.ERROR, hostile, f"{hostile} broke.", "train/loss", hostile, AT, AT, AT
    )
    analysis = analysed(leap(), finding)
    assert analysis.document.runs[0].incidents
    assert "<script" not in html.render(analysis.document, analysis.runs).lower()
    assert "\x1b" not in terminal.render(analysis.document, analysis.runs)
    assert "\x1b" not in markdown.render(analysis.document, analysis.runs)
