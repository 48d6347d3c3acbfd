"""Whether a replay left out the batches that its plan names, and how it could."""

from __future__ import annotations

from trainscope.core import facts
from trainscope.core.positions import ranges
from trainscope.core.run import Run
from trainscope.replay.config import ReplayConfig


def why_not(replay: Run, config: ReplayConfig) -> str | None:
    """Return why a replay did not leave out what its plan names, None where it did."""
    dropped = [int(value) for value in facts.values(replay, "smoke.dropped_batches")]
    missing = sorted(set(config.skip_batches) - set(dropped))
    if not missing:
        return None
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
