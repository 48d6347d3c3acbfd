from __future__ import annotations

import re

import numpy as np
import pytest

from trainscope.core.run import Series
from trainscope.report.document import Baseline, Comparison, Counts, SkippedEntry
from trainscope.report.pipeline import Analysis
from trainscope.report.sparkline import marked_columns, sparkline
from trainscope.report.terminal import render, summary

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_the_plain_report_is_as_agreed(several: Analysis, golden):
    golden("report/several.txt", render(several.document, several.runs))


def test_the_drawn_report_is_as_agreed(several: Analysis, golden):
    golden("report/several.drawn.txt", render(several.document, several.runs, decorated=True, width=90))


def test_colours_only_add_escapes(several: Analysis):
    colored = render(several.document, several.runs, decorated=True, color=True, width=90)
    assert ANSI.search(colored)
    without = "\n".join(line.rstrip() for line in ANSI.sub("", colored).split("\n"))
    assert without == render(several.document, several.runs, decorated=True, width=90)


def test_the_plain_report_has_no_escapes_and_no_drawing(several: Analysis):
    text = render(several.document, several.runs)
    assert "\x1b" not in text
    assert not re.search("[─-▟▁-█✖▲●→‾]", text)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_drawn_lines_fit_the_terminal(several: Analysis, width):
    text = render(several.document, several.runs, decorated=True, width=width)
    assert max(len(line) for line in text.split("\n")) <= width


@pytest.mark.parametrize("decorated", [False, True])
def test_hostile_names_neither_colour_nor_break_lines(hostile: str, named, decorated):
    one, plain = named(hostile), named("plain")
    text = render(one.document, one.runs, decorated=decorated, width=10_000)
    text.encode("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", text)
    benign = render(plain.document, plain.runs, decorated=decorated, width=10_000)
    assert text.count("\n") == benign.count("\n")


def test_markup_of_the_terminal_library_is_shown_and_not_obeyed(named):
    one = named("[bold red]x[/]")
    assert "[bold red]x[/]" in render(one.document, one.runs, decorated=True, width=200)


def test_a_run_without_points_at_hand_is_shown_without_sparkline(several: Analysis):
    assert "Loss spike" in render(several.document, {}, decorated=True)


def test_many_detectors_skipped_for_one_reason_are_counted_and_few_are_named(several: Analysis):
    run = several.document.runs[0]
    skipped = [SkippedEntry(detector=f"d{i}", reason="needs x") for i in range(5)]
    skipped += [SkippedEntry(detector=name, reason="needs y") for name in "abcd"]
    document = several.document.model_copy(update={"runs": [run.model_copy(update={"skipped": skipped})]})
    assert "skipped   5 detectors: needs x; a, b, c, d: needs y\n" in render(document, {})


def test_the_summary_is_one_line(several: Analysis):
    expected = "FAIL  1 log could not be judged; 1 error, 1 warning at or above warning  (2 runs)"
    assert summary(several.document) == expected


def test_a_sparkline_shows_a_spike_of_one_step():
    value = np.full(10_000, 2.0) + np.linspace(0, 0.5, 10_000)
    value[5000] = 9.0
    line = sparkline(Series("x", np.arange(10_000), value), 40)
    assert len(line) == 40
    assert line[20] == "█"
    assert line[19] != "█"


def test_a_sparkline_shows_what_is_no_number():
    value = np.linspace(3, 2, 40)
    value[10] = np.nan
    assert sparkline(Series("x", np.arange(40), value), 40)[10] == "×"


def test_a_sparkline_has_no_more_characters_than_points():
    assert sparkline(Series("x", np.arange(3), np.array([1.0, 2, 3])), 40) == "▁▅█"


def test_marked_columns_are_those_of_the_steps():
    series = Series("x", np.arange(100), np.zeros(100))
    assert marked_columns(series, 50, 59, 10) == (5, 6)
    assert marked_columns(series, 0, 99, 10) == (0, 10)
    assert marked_columns(series, 500, 600, 10) == (9, 10)


def test_a_plain_log_is_told_once_what_only_a_recording_has(several: Analysis):
    run = several.document.runs[0]
    skipped = [
        SkippedEntry(detector="a", reason="needs attention", kind="recording"),
        SkippedEntry(detector="b", reason="needs batches", kind="recording"),
        SkippedEntry(detector="c", reason="needs a recorder of voices"),
    ]
    document = several.document.model_copy(update={"runs": [run.model_copy(update={"skipped": skipped})]})
    text = render(document, {})
    assert "a, b: needs a run recorded with trainscope smoke, trainscope ci or the recorder" in text
    assert "c: needs a recorder of voices" in text


def test_comparisons_that_agree_are_counted_and_the_others_shown(several: Analysis):
    lines = [("pairing", "paired"), ("train/loss", "worse"), ("a", "within margin (2 workers)"), ("b", "same")]
    comparisons = [Comparison(metric=metric, verdict=verdict) for metric, verdict in lines]
    baseline = Baseline(name="main", runs=1, fixed=[], comparisons=comparisons)
    text = render(several.document.model_copy(update={"baseline": baseline}), {})
    assert "compared  train/loss: worse\n" in text
    assert "compared  3 other comparisons within their margins\n" in text
    assert text.count("compared") == 2


def test_findings_that_were_told_not_to_fail_are_no_pass(several: Analysis):
    verdict = several.document.verdict.model_copy(update={"status": "pass", "fail_on": "never", "reason": "1 error"})
    document = several.document.model_copy(update={"verdict": verdict})
    assert summary(document).startswith("NOT GATED  1 error")
    assert render(document, {}).rstrip().endswith("NOT GATED  1 error")
    clean = document.model_copy(update={"counts": Counts(info=3)})
    assert summary(clean).startswith("PASS")
