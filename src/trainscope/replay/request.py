"""A plan that its author made: this checkpoint, without those batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainscope.core.errors import ConfigError
from trainscope.core.positions import LONGEST, numbers
from trainscope.replay.checkpoints import step_of
from trainscope.replay.config import Batch, ReplayConfig

FROM_FILE = "@"
MOST_BYTES = 50_000_000
AHEAD = (
    "a loader that is made anew begins at position 0: give SkippingDataLoader start=, the position of the first batch "
    "after the checkpoint; positions are counted from the start of training, not from the checkpoint"
)


def batches_from(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the positions that ``--skip-batches`` names, ascending, none twice.

    Parameters
    ----------
    texts : sequence of str
        Each a comma-separated list of numbers and ranges, or ``@`` and a file with one such list a line; in
        a file, empty lines and what follows ``#`` are left out.

    Raises
    ------
    ConfigError
        If one is neither, with the line of the file.
    """
    found: set[int] = set()
    for text in texts:
        if text.strip() == FROM_FILE:
            raise ConfigError(f"--skip-batches {FROM_FILE}: names no file; give {FROM_FILE}batches.txt")
        if text.startswith(FROM_FILE):
            found.update(_of_file(Path(text[len(FROM_FILE) :])))
        else:
            found.update(_of_text(text, "--skip-batches"))
        if len(found) > LONGEST:
            raise ConfigError(f"--skip-batches: names more than {LONGEST:,} batches")
    return tuple(sorted(found))


def request(checkpoint: str, skip: Sequence[int], *, resume: bool) -> ReplayConfig:
    """Return the plan for a checkpoint and the positions to leave out."""
    name = Path(checkpoint.rstrip("/")).name
    return ReplayConfig(
        checkpoint=checkpoint,
        resume=resume,
        skip_batches=list(skip),
        rewind_to_step=step_of(name),
        reason="as asked for on the command line",
        notes=[AHEAD],
        batches=[Batch(index=position) for position in skip],
    )


def _of_file(path: Path) -> set[int]:
    try:
        with path.open("rb") as file:  # a pipe has no size, and a device no end
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ConfigError(f"--skip-batches @{path}: is too large for a list of batches")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"--skip-batches @{path}: cannot be read ({(error.strerror or 'unreadable').lower()})"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"--skip-batches @{path}: is no text; give one batch number or list a line") from None
    found: set[int] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        said = line.partition("#")[0].strip().rstrip(",")
        if said:
            found |= _of_text(said, f"{path}:{number}")
        if len(found) > LONGEST:
            raise ConfigError(f"{path}:{number}: names more than {LONGEST:,} batches with the lines before it")
    if not found:
        raise ConfigError(f"--skip-batches @{path}: holds no batch number")
    return found


def _of_text(text: str, where: str) -> set[int]:
    try:
        return set(numbers(text))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
