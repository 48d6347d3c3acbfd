"""``trainscope smoke --replay``: train again without some batches, and say whether that helped."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import say, write_file, write_stdout

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.replay.config import ReplayConfig
    from trainscope.replay.proof import Proof
    from trainscope.smoke.run import Smoke

DOCUMENT = "findings.json"
"""In the folder of the replay: the report document of the replayed run, with the proof in it."""


def steps_of(config: ReplayConfig, wanted: int | None) -> int:
    """Return how many steps a replay takes: as many as the original, unless told otherwise."""
    from trainscope.cli.smoke import STEPS

    if wanted is not None:
        return wanted
    return config.source.steps if config.source is not None and config.source.steps else STEPS


def seed_of(config: ReplayConfig, wanted: int | None) -> int | None:
    """Return the seed of a replay: that of the original, unless told otherwise."""
    return wanted if wanted is not None or config.source is None else config.source.seed


def original_of(config: ReplayConfig, file: Path, out: Path) -> Run:
    """Return the run that a plan is about; `out`, which the replay is recorded into, must be another folder.

    Raises
    ------
    ConfigError
        If the plan names none, it cannot be read, or another run stands in its place.
    """
    from trainscope.core.errors import ConfigError, NoDataError, ReadError
    from trainscope.readers import read_runs
    from trainscope.report.build import run_id
    from trainscope.report.text import well_formed

    if config.source is None:
        raise ConfigError(f"--replay {file}: names no run to compare with; write it with trainscope replay --run")
    if "\0" in config.source.path or well_formed(config.source.path) != config.source.path:
        raise ConfigError(f"--replay {file}: source.path is not a usable path; write it anew with trainscope replay")
    place = file.parent / config.source.path
    if _is_special(place):
        raise ConfigError(
            f"--replay {file}: source.path is neither a file nor a folder; write it anew with trainscope replay"
        )
    if out.resolve() in (place.resolve(), place.resolve().parent):
        raise ConfigError(f"--out {out}: holds the run to compare with; name another folder")
    try:
        runs = {run_id(run): run for run in read_runs(str(place))}
    except (ReadError, NoDataError) as error:
        raise ConfigError(f"--replay {file}: the run to compare with: {error}") from None
    if config.source.id not in runs:
        raise ConfigError(f"--replay {file}: {place} holds another run now; plan anew with trainscope replay --run")
    return runs[config.source.id]


def _is_special(place: Path) -> bool:
    """Tell whether something that is no file and no folder is there: a pipe would be waited for."""
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def prove(config: ReplayConfig, original: Run, smoke: Smoke, out: Path) -> ExitCode:
    """Compare a replay with its original, write the document, and return the exit code."""
    from trainscope.core.settings import load_settings
    from trainscope.detectors import configure
    from trainscope.diagnosis.compare import IDS
    from trainscope.readers import read_runs
    from trainscope.replay.proof import Verdict
    from trainscope.replay.proof import prove as compare
    from trainscope.report.replay import with_proof

    settings = load_settings(None)
    again = _same_rank(original, [run for path in smoke.paths for run in read_runs(str(path))])
    proof = compare(original, again, config, configure(settings, others=IDS))
    document = with_proof(again, settings, config, proof)
    write_file(out / DOCUMENT, document.to_json())
    write_stdout("".join(f"{line}\n" for line in _lines(proof)))
    say(f"written: {out / DOCUMENT}")
    if proof.verdict is Verdict.VERIFIED:
        return ExitCode.PASS
    return ExitCode.CANNOT_JUDGE if proof.verdict is Verdict.NOT_PROVEN else ExitCode.GATE_FAILED


def _same_rank(original: Run, replay: Sequence[Run]) -> Run:
    """Return the rank of a replay that reads the batches of the original, the first where there is none."""
    from trainscope.diagnosis.ranks import rank_of

    return next((run for run in replay if rank_of(run) == rank_of(original)), replay[0])


def _lines(proof: Proof) -> list[str]:
    from trainscope.detectors.base import number
    from trainscope.report.text import printable

    def shown(value: float | None) -> str:
        return "" if value is None else number(value)

    lines = [f"replay: {proof.verdict}: {printable(proof.reason)}"]
    if proof.rows:
        width = max(len(f"{row.metric}, {row.what}") for row in proof.rows)
        lines.append(f"  {'':<{width}}  {'original':>10}  {'replay':>10}")
        lines += [
            f"  {f'{row.metric}, {row.what}':<{width}}  {shown(row.original):>10}  {shown(row.replay):>10}"
            for row in proof.rows
        ]
    return [*lines, *(f"  note  {printable(note)}" for note in proof.notes)]
