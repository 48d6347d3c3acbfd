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
    lines.append(f"Measured with {figures['command']}")
    return [*lines, *(_structural(entry["structural"], figures["structural"]) if "structural" in entry else [])]


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


def _structural(entry: Mapping[str, Any], command: str) -> list[str]:
    """Say what small trainings with planted faults showed: of its kind, and healthy ones that look like it."""
    faults, alike, others = entry["faults"], entry["alike"], entry["others"]
    each = ", ".join(f"{name} {f['found']} of {f['runs']}" for name, f in faults["each"].items())
    elsewhere = f" ({faults['elsewhere']} of them found by another detector)" if faults["elsewhere"] else ""
    missed = f"{faults['missed']} of {faults['runs']}{elsewhere}"
    lines = [f"Small trainings with a fault of its kind missed: {missed}. Found: {each}."]
    flagged = {**alike["which"], **others["which"]}
    which = f" ({', '.join(f'{name} {count}' for name, count in flagged.items())})" if flagged else ""
    quiet = f"Healthy trainings that look like it flagged: {alike['flagged']} of {alike['runs']}"
    if others["runs"]:
        quiet += f", other healthy ones: {others['flagged']} of {others['runs']}"
    lines.append(f"{quiet}{which}.")
    if "gate" in entry:
        gate = entry["gate"]
        found = ", ".join(f"{name} {'found' if said else 'missed'}" for name, said in gate["each"].items())
        said = f"Without a baseline, in the benchmark of the gate: {found}" if found else "In the benchmark of the gate"
        lines.append(f"{said}; {gate['flagged']} of {gate['benign']} harmless changes flagged.")
    return [*lines, f"Measured with {command}"]
