"""The parts that come from the registry of detectors and their docstrings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from markdown_text import body, cell, plain, sections, table

from trainscope.cli.explain import parameter_meanings, toml_value
from trainscope.core.metrics import CANONICAL
from trainscope.detectors import DETECTORS
from trainscope.detectors.base import Detector
from trainscope.detectors.measured import measured

_PARAMETER = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def summary() -> str:
    """Return a table of all detectors, a row each, with a link to its section."""
    rows = []
    for detector in DETECTORS:
        first, _ = sections(detector.page)
        rows.append((f"[`{detector.id}`](docs/detectors.md#{detector.id})", cell(_says(first)), _needs(detector)))
    return table(("detector", "finds", "reads"), rows)


def summary_here() -> str:
    """Return the same table for a page beside the sections."""
    return summary().replace("docs/detectors.md#", "#")


def pages() -> str:
    """Return one section a detector."""
    return "\n\n".join(_page(detector) for detector in DETECTORS)


def _needs(detector: Detector[Any]) -> str:
    return ", ".join(f"`{name}`" if name in CANONICAL else name for name in detector.needs)


def _says(first: str) -> str:
    said = first.partition(": ")[2].rstrip(".")
    return said[0].upper() + said[1:] + "."


def _page(detector: Detector[Any]) -> str:
    first, found = sections(detector.page)
    parts = [f"## {detector.id}", plain(_says(first)), f"Reads {_needs(detector)}."]
    for heading, lines in found.items():
        parts.append(f"**{heading}**")
        parts.append(_parameters(detector, lines) if heading == "Parameters" else body(lines))
    parts += ["**Measured**", " ".join(cell(line) for line in measured(detector.id))]
    return "\n\n".join(parts)


def _parameters(detector: Detector[Any], lines: list[str]) -> str:
    """Return the table of parameters: default, meaning (from the page), unit and reason (from the field)."""
    if not detector.parameters():
        return "None."
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        match = _PARAMETER.match(line)
        if match:
            names = match[1].split(", ")
            meanings |= dict.fromkeys(names, match[2])
        else:
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    reasons = parameter_meanings(type(detector.params))
    unknown = set(meanings) - set(detector.parameters())
    if unknown:
        raise SystemExit(f"{detector.id}: its page describes {sorted(unknown)}, which are no parameters")
    return table(
        ("parameter", "default", "meaning", "unit, and why this default"),
        [
            (f"`{name}`", f"`{toml_value(value)}`", cell(meanings.get(name, "")), cell(reasons.get(name, "")))
            for name, value in detector.parameters().items()
        ],
    )


PARTS: Mapping[str, Callable[[], str]] = {
    "detectors": summary,
    "detectors_here": summary_here,
    "detector_pages": pages,
}
