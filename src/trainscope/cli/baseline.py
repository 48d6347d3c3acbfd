"""``trainscope baseline``: keep a run to compare later ones with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import check_writable, say
from trainscope.core.errors import ConfigError


@click.group(short_help="Keep a run to compare later ones with.")
def baseline() -> None:
    """Keep a run to compare later ones with."""


@baseline.command(short_help="Write a run to one small file.")
@click.argument("run", metavar="RUN")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("baseline.arrow"),
    show_default=True,
    metavar="FILE",
    help="The file, fit for a repository.",
)
def save(run: str, out: Path) -> ExitCode:
    """Write a run to one small file.

    RUN is a recorded run, the folder of trainscope ci or trainscope smoke, or a log. Of several ranks name one.
    """
    from trainscope.report.against import read_baselines
    from trainscope.report.apart import keep_apart
    from trainscope.store import bundle

    check_writable(out)
    keep_apart(out, [run])
    if out.is_file() and not bundle.is_bundle(out):
        raise ConfigError(f"--out {out}: is there and is no baseline; name another file")
    runs = read_baselines([run])
    if len(runs) > 1:
        names = ", ".join(one.name for one in runs[:6])
        raise ConfigError(f"{run}: holds {len(runs)} runs ({names}); name one of them")
    bundle.write(runs[0], out)
    say(f"saved {runs[0].name}: {out}, {out.stat().st_size / 1024:.0f} KiB")
    say(f"next: trainscope ci --baseline {shlex.quote(str(out))} -- COMMAND")
    return ExitCode.PASS
