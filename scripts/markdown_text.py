"""Docstrings to Markdown, and tables; shared by the modules that make pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_HEADING = re.compile(r"^[A-Z][a-z ]+$")
_ROLE = re.compile(r":(?:mod|func|class|meth):`~?(?:[\w.]+\.)?(\w+)`")
_ITEM = re.compile(r"^\([a-z]\) ")
_URL = re.compile(r"(?<![<(`])(https?://[^\s)]+)")


def plain(text: str) -> str:
    """Return docstring text as Markdown: one back-tick for code, addresses as links."""
    return _URL.sub(r"<\1>", _ROLE.sub(r"`\1`", text).replace("``", "`"))


def cell(text: str) -> str:
    """Return text fit for a table's cell."""
    return " ".join(plain(text).split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells must be fit for one already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def sections(docstring: str) -> tuple[str, dict[str, list[str]]]:
    """Split a page's docstring into its first sentence and its headed sections, lines not indented."""
    first, *rest = docstring.strip().splitlines()
    found: dict[str, list[str]] = {}
    heading = ""
    for line in rest:
        if _HEADING.match(line):
            heading = line
            found[heading] = []
        elif heading:
            found[heading].append(line.removeprefix("    "))
    return first, found


def body(lines: Sequence[str]) -> str:
    """Return the lines of a section; items marked (a), (b) become a list."""
    out: list[str] = []
    listing = False
    for line in lines:
        if _ITEM.match(line):
            out.append(f"- {line}" if listing or not out else f"\n- {line}")
            listing = True
        else:
            out.append(line)
    return plain("\n".join(out)).strip()
