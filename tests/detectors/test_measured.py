"""The sentences about a detector's measured rates say what the table holds."""

from __future__ import annotations

import json

from trainscope.detectors.measured import FIGURES, measured


def test_the_sentences_hold_the_figures_of_the_table():
    table = json.loads(FIGURES.read_text(encoding="utf-8"))
    entry = table["detectors"]["spikes"]
    said = " ".join(measured("spikes"))
    assert f"{entry['logs']['alarms']} in {entry['logs']['steps']:,} steps" in said
    assert f"{entry['faults']['missed']} of {entry['faults']['runs']}" in said
    assert table["command"] in said


def test_what_has_no_entry_has_no_sentence():
    assert measured("paired_loss") == []


def test_the_bounds_in_the_table_are_above_the_figures():
    for name, entry in json.loads(FIGURES.read_text(encoding="utf-8"))["detectors"].items():
        if "logs" in entry:
            assert entry["logs"]["high"] > entry["logs"]["alarms"] / entry["logs"]["steps"] * 10_000, name
        if "faults" in entry:
            faults = entry["faults"]
            assert faults["low"] <= faults["missed"] / faults["runs"] <= faults["high"], name
            assert sum(f["runs"] - f["found"] for f in faults["each"].values()) == faults["missed"], name
