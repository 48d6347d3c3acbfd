"""The outputs by name; each is a view of the document and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from trainscope.core.run import Run
from trainscope.report.document import Document

Renderer = Callable[[Document, Mapping[str, Run]], str]

OUTPUTS: tuple[str, ...] = ("terminal", "json", "markdown", "html", "junit")


def render(output: str, document: Document, runs: Mapping[str, Run]) -> str:
    """Return the document in the format called `output`, one of ``OUTPUTS``.

    ``terminal`` is plain here; the command line asks :mod:`trainscope.report.terminal` itself for
    colours and width.
    """
    if output == "json":
        return document.to_json()
    if output not in OUTPUTS:
        raise ValueError(f"no output is called {output!r}")
    renderer: Renderer = import_module(f"trainscope.report.{output}").render
    return renderer(document, runs)
