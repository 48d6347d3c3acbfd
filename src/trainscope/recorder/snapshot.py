"""What a spike leaves behind to replay it from: generator state and a checkpoint.

Both are plain ``torch.save`` files of tensors, numbers and strings, so they load with ``weights_only=True``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainscope.core.errors import ReadError
from trainscope.probe import random_state
from trainscope.store import stream


def save_rng_state(path: Path, state: Mapping[str, Any], *, step: int, batch_index: int | None) -> None:
    """Write the state of the generators from before `step`."""
    _save(path, {**random_state.storable(state), "step": step, "batch_index": batch_index})


def load_rng_state(path: str | Path) -> dict[str, Any]:
    """Read a file of :func:`save_rng_state`.

    Raises
    ------
    ReadError
        If it is not one.
    """
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise ReadError(path, "no such file") from None
    except Exception as error:  # noqa: BLE001  # torch names no common base for what an arbitrary file makes it raise
        first = str(error).partition("\n")[0]
        raise ReadError(path, f"not an RNG state written by trainscope ({first})") from None
    if not isinstance(state, dict) or "torch" not in state or "python" not in state:
        raise ReadError(path, "not an RNG state written by trainscope")
    return state


def restore_rng_state(state: Mapping[str, Any] | str | Path) -> None:
    """Put every generator back to a loaded state or a file's: the same batch gives the same loss.

    Raises
    ------
    ReadError
        If the file is not an RNG state.
    """
    random_state.put_back(load_rng_state(state) if isinstance(state, (str, Path)) else state)


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    *,
    step: int,
    batch_index: int | None,
) -> None:
    """Write model and optimizer state as they are now, before the optimizer step of `step`."""
    states = [optimizer.state_dict() for optimizer in optimizers]
    _save(
        path,
        {
            "step": step,
            "batch_index": batch_index,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": states[0] if len(states) == 1 else states,
        },
    )


def _save(path: Path, content: Mapping[str, Any]) -> None:
    # Through a file of Python's: torch's own writer does not say that the disk is full.
    with stream.whole(path) as part, part.open("wb") as file:
        torch.save(dict(content), file)
