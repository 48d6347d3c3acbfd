"""The part of README that repeats the headlines of docs/evidence.md, so that a figure stands in one place only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence.md"
_SECTION = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_FIGURES = re.compile(r"<!-- figures:(?P<name>[a-z_]+) -->\n(?P<text>.*?)<!-- end:figures:(?P=name) -->", re.DOTALL)
_HEADLINE = re.compile(r"^\*\*(?P<text>.+?)\*\*$", re.MULTILINE)


def headlines() -> str:
    """Return a list: each section of the evidence with the bold first line of its figures."""
    items = []
    for section in _SECTION.finditer(PAGE.read_text(encoding="utf-8")):
        figures = _FIGURES.search(section["text"])
        if figures is None:
            continue
        headline = _HEADLINE.search(figures["text"])
        said = headline["text"] if headline else "not measured yet"
        items.append(f"- {section['title']}: {said}")
    return "\n".join(items)


PARTS: Mapping[str, Callable[[], str]] = {"headlines": headlines}
