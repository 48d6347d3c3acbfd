"""What ``trainscope ci`` leaves in its folder: the document, its readable forms, and the compact records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.cli.output import write_file

if TYPE_CHECKING:
    from trainscope.report.pipeline import Analysis

FILES = {"findings.json": "json", "report.md": "markdown", "report.html": "html"}
"""File to form; ``bundle/`` stands beside them."""


def write_outputs(analysis: Analysis, out: Path) -> None:
    """Write every output; those of an earlier call give way.

    Raises
    ------
    StoreError, ConfigError
        If one cannot be written.
    """
    from trainscope.report.against import BUNDLE_FOLDER
    from trainscope.report.renderers import render
    from trainscope.store import bundle, stream

    folder = out / BUNDLE_FOLDER
    with stream.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"*{bundle.SUFFIX}"):
            old.unlink()
    for number, (identity, run) in enumerate(analysis.runs.items()):
        # Counted, so that they are read back in the order of the report.
        bundle.write(run, folder / f"{number:02d}-{identity}{bundle.SUFFIX}")
    for name, form in FILES.items():
        write_file(out / name, render(form, analysis.document, analysis.runs))
