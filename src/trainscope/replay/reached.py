"""Whether a replay left out the batches that its plan names, and how it could."""

from __future__ import annotations

import numpy as np

from trainscope.core import facts
from trainscope.core.positions import batches, ranges
from trainscope.core.run import Run
from trainscope.replay.alignment import Alignment
from trainscope.replay.config import ReplayConfig
from trainscope.replay.positions import HASH, positions_of

SAME = 0.5
"""Share of the batches that must have the original's hash: what they hold may depend on the step (augmentation with a
state of its own), the order of all of them may not."""


def why_not(replay: Run, config: ReplayConfig) -> str | None:
    """Return why a replay did not leave out what its plan names, None where it did."""
    dropped = [int(value) for value in facts.values(replay, "smoke.dropped_batches")]
    missing = sorted(set(config.skip_batches) - set(dropped))
    if not missing:
        return _other_steps(replay, config)
    has_loader = replay.config.get("smoke.data_loader") is True
    if not has_loader and config.method == "drop_batch":
        return (
            "the script reads no DataLoader, so that no batch can be dropped; plan anew with trainscope replay --run: "
            "then the updates on them are undone"
        )
    if has_loader and config.method == "skip_update":
        return "the script reads a DataLoader, whose batches are dropped; plan anew with trainscope replay --run"
    if not has_loader and replay.get("batch_index") is None:
        return "the script reads no DataLoader and calls no module that trains: its batches cannot be told apart"
    if not dropped:
        return f"none of the batches {ranges(config.skip_batches)} was reached: {way_out(replay)}"
    return f"the batches {ranges(missing)} were not reached: {way_out(replay)}"


def way_out(replay: Run) -> str:
    """Return how a replay that ended too soon gets farther."""
    if replay.config.get("smoke.ended") == "script":
        return "the script ended by itself, so let it train longer"
    return "give the replay more --steps"


def _other_steps(replay: Run, config: ReplayConfig) -> str | None:
    """Return why the positions of a plan are not those of its steps, None where they are."""
    if any(batch.hash is not None for batch in config.batches):
        return None  # from a recording: the positions were counted, not assumed
    taken = len(config.skip_batches) / len(config.steps) if config.steps else 0.0
    per_step = positions_of(replay).per_step
    if not taken or not float(taken).is_integer() or int(taken) == per_step:
        return None
    return (
        f"the plan takes {batches(int(taken))} a step, and this script trains on {per_step}: what was left out are the "
        "batches of other steps; record the training with trainscope smoke, and plan anew from that run"
    )


def other_batches(original: Run, replay: Run, alignment: Alignment, config: ReplayConfig) -> str | None:
    """Return why what was left out need not be what the plan names: the other batches are not the original's either.

    Hashes of the batches of both runs are compared, position by position; None where they agree, or are not recorded.
    """
    step, mine, theirs = alignment.values(original, replay, HASH)
    mine, theirs = mine[~np.isin(step, config.steps)], theirs[~np.isin(step, config.steps)]
    if not len(mine) or np.mean(mine == theirs) > SAME:
        return None
    return (
        "but the batches are not those of the original run, so that what was left out need not be what the plan names: "
        "fix the order and the content of the batches (a seed in the script, or --seed for both runs)"
    )
