"""What ``trainscope ci`` leaves in its folder: the document, its readable forms, and the compact records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.cli.output import write_file

if TYPE_CHECKING:
    from trainscope.core.settings import Settings
    from trainscope.replay.config import ReplayConfig
    from trainscope.report.pipeline import Analysis

FILES = {"findings.json": "json", "report.md": "markdown", "report.html": "html"}
"""File to form; ``bundle/`` and ``records/`` stand beside them, and ``replay_config.json`` where something happened."""


def write_outputs(
    analysis: Analysis, settings: Settings, out: Path, plans: Mapping[str, tuple[str, ReplayConfig]]
) -> None:
    """Write every output; those of an earlier call give way.

    Parameters
    ----------
    settings : Settings
        Those that the runs were judged with.
    plans : mapping
        Run id to the name of a file and the plan to write there.

    Raises
    ------
    StoreError, ConfigError
        If one cannot be written.
    """
    from trainscope.replay.config import is_replay_config
    from trainscope.report.against import BUNDLE_FOLDER
    from trainscope.report.renderers import render
    from trainscope.report.replay import replay_entry, with_replay
    from trainscope.site import records
    from trainscope.site.bundle import RECORDS
    from trainscope.store import bundle, stream

    folder = out / BUNDLE_FOLDER
    with stream.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"*{bundle.SUFFIX}"):
            old.unlink()
    for number, (identity, run) in enumerate(analysis.runs.items()):
        # Counted, so that they are read back in the order of the report.
        bundle.write(run, folder / f"{number:02d}-{identity}{bundle.SUFFIX}")
    for old in out.glob("replay_config*.json"):
        if is_replay_config(old):
            old.unlink()
    for name, plan in plans.values():
        write_file(out / name, plan.to_json())
    analysis = with_replay(analysis, {run: replay_entry(plan, name) for run, (name, plan) in plans.items()})
    records.write_records(records.records_of(analysis, settings), out / RECORDS)
    for name, form in FILES.items():
        write_file(out / name, render(form, analysis.document, analysis.runs))
