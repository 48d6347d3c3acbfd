"""How often each detector was wrong when ``bench/detectors/run.py`` measured it; the figures lie in measured.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("measured.json")


@cache
def _figures() -> Mapping[str, Any]:
    figures: Mapping[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return figures


def measured(detector: str) -> list[str]:
    """Return what is known of a detector's false alarms and misses, a sentence a line; empty for what has no entry.

    Parameters
    ----------
    detector : str
        Its id. A comparison with a baseline has no entry: the benchmark of the gate measures it.
    """
    figures = _figures()
    entry = figures["detectors"].get(detector)
    if entry is None:
        return []
    lines = [*_false_alarms(entry), *_misses(entry)]
    if "why_not" in entry:
        lines.append(f"Misses are not measured here: {entry['why_not']}.")
    return [*lines, f"Measured with {figures['command']}"]


def _false_alarms(entry: Mapping[str, Any]) -> list[str]:
    lines = []
    if "logs" in entry:
        logs = entry["logs"]
        lines.append(
            f"False alarms in healthy logs: {logs['alarms']} in {logs['steps']:,} steps of Student-t(3) noise with "
            f"autocorrelation 0.3 (95 %: at most {logs['high']:.2f} per 10,000 steps)."
        )
    if "recordings" in entry:
        runs = entry["recordings"]
        lines.append(
            f"Healthy recordings of a small GPT flagged: {runs['flagged']} of {runs['runs']} "
            f"(95 %: at most {runs['high']:.1%})."
        )
    return lines


def _misses(entry: Mapping[str, Any]) -> list[str]:
    lines = []
    if "faults" in entry:
        faults = entry["faults"]
        each = ", ".join(f"{name} {f['found']} of {f['runs']}" for name, f in faults["each"].items())
        lines.append(
            f"Planted faults missed: {faults['missed']} of {faults['runs']} "
            f"(95 %: {faults['low']:.1%} to {faults['high']:.1%}). Found: {each}."
        )
        if faults["other"]:
            lines.append(f"{faults['other']} of those found were named by another detector of the same kind of event.")
    if "trainings" in entry:
        each = ", ".join(f"{name} {f['found']} of {f['runs']}" for name, f in entry["trainings"].items())
        lines.append(f"Trainings with its fault found: {each}.")
    return lines
