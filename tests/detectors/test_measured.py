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


def test_what_small_trainings_showed_is_said_with_its_own_command():
    table = json.loads(FIGURES.read_text(encoding="utf-8"))
    entries = {name: e["structural"] for name, e in table["detectors"].items() if "structural" in e}
    assert len(entries) >= 11
    for name, entry in entries.items():
        faults, said = entry["faults"], measured(name)
        assert sum(f["runs"] - f["found"] for f in faults["each"].values()) == faults["missed"], name
        assert sum({**entry["alike"]["which"], **entry["others"]["which"]}.values()) == sum(
            entry[kind]["flagged"] for kind in ("alike", "others")
        ), name
        assert any(f"missed: {faults['missed']} of {faults['runs']}" in line for line in said), name
        assert any(f"flagged: {entry['alike']['flagged']} of {entry['alike']['runs']}" in line for line in said), name
        assert said[-1] == f"Measured with {table['structural']}"
