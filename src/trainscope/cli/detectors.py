"""``trainscope detectors``: list the detectors."""

from __future__ import annotations

from pathlib import Path

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.options import settings_for
from trainscope.cli.output import write_stdout


@click.command(short_help="List the detectors.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings file.")
def detectors(config: Path | None) -> ExitCode:
    """List the detectors: id, whether the settings enable it, what it finds, and what it needs."""
    from trainscope.detectors import DETECTORS, configure
    from trainscope.diagnosis.compare import COMPARERS, IDS, configured

    settings = settings_for(config, None)
    enabled = {one.detector.id: one.severity for one in configure(settings, others=IDS)}
    enabled |= {one.comparer.id: one.severity for one in configured(settings)}
    rows = [("id", "on", "finds", "needs")]
    known = [(d.id, d.title, d.needs) for d in DETECTORS] + [(c.id, c.title, c.needs) for c in COMPARERS]
    for name, title, needs in known:
        severity = enabled.get(name)
        on = severity.label if severity is not None else "yes" if name in enabled else "no"
        rows.append((name, on, title, ", ".join(needs)))
    widths = [max(len(row[i]) for row in rows) for i in range(3)] + [0]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    written = write_stdout("\n".join(line.rstrip() for line in lines) + "\n")
    return ExitCode.PASS if written else ExitCode.CANNOT_JUDGE
