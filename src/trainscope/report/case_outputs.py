"""The forms of a case file by name; each is a view of the file and, for charts, of its run."""

from __future__ import annotations

from trainscope.report.cases import Reported


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
