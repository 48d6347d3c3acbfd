"""The forms of a case file by name; each is a view of the file and, for charts, of its run."""

from __future__ import annotations

import re
from pathlib import Path

from trainscope.report.cases import Reported

HEAD = 1 << 16
_WRITTEN = re.compile(
    r"# (Case file: |Weights of |The one run is |All \d+ runs are |\d+ of \d+ runs? broke)"
    r"|<!doctype html>.*\btrainscope</title>"
    r'|\{\s*"schema_version": "1\.\d+",\s*"tool": \{\s*"name": "trainscope"',
    re.DOTALL,
)
"""How each form begins."""


def render(form: str, reported: Reported) -> str:
    """Return a case file as ``markdown``, ``json`` or ``html``."""
    if form == "json":
        return reported.file.to_json()
    if form == "markdown":
        from trainscope.report.case_markdown import render as markdown

        return markdown(reported.file)
    if form == "html":
        from trainscope.report.case_html import render as html

        return html(reported.file, reported.runs)
    raise ValueError(f"no form of a case file is called {form!r}")


def is_report(path: Path) -> bool:
    """Tell whether a file is empty or one that :func:`render` wrote, in any form: one that may be written over."""
    with path.open("rb") as file:
        head = file.read(HEAD).decode("utf-8", "replace")
    return not head or _WRITTEN.match(head) is not None
