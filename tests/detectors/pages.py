"""How the page of a detector is built."""

from __future__ import annotations

HEADINGS = ["What it finds", "Algorithm", "Parameters", "False positives", "Misses", "Reference"]


def section(page: str, heading: str) -> str:
    """Return the lines of `page` under `heading`."""
    lines = page.splitlines()
    begin = lines.index(heading) + 1
    rest = [i for i in range(begin, len(lines)) if lines[i] and not lines[i].startswith(" ")]
    return "\n".join(lines[begin : rest[0] if rest else len(lines)])
