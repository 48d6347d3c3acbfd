"""Processes of one training: who is who, one name for the run, and decisions that all take together."""

from __future__ import annotations

import contextlib
import itertools
import os
import time

import torch
import torch.distributed as dist

from trainscope.core.config import TrainScopeConfig

_attached = itertools.count()
"""How many runs this process has had named: the n-th of each rank are one."""


def is_distributed() -> bool:
    """Tell whether several processes train together and can talk."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank_of(config: TrainScopeConfig) -> int | None:
    """Return this process's rank, None for a training of one process.

    From the settings, else torch.distributed, else what ``torchrun`` says (the process group may come later).
    """
    if config.rank is not None:
        return config.rank
    if is_distributed():
        return dist.get_rank()
    world, rank = os.environ.get("WORLD_SIZE", ""), os.environ.get("RANK", "")
    return int(rank) if world.isdigit() and rank.isdigit() and int(world) > 1 else None


def with_common_name(config: TrainScopeConfig) -> TrainScopeConfig:
    """Return `config` with a run name that all ranks share: clocks differ.

    Nobody waits for anybody: a script that records on its first rank only must not hang.
    """
    if config.run_name is not None or not is_distributed():
        return config
    name = time.strftime("run_%Y%m%d_%H%M%S")
    from torch.distributed import distributed_c10d  # not in every build of torch

    with contextlib.suppress(AttributeError, RuntimeError, NotImplementedError):
        # The store that the processes met at: the first to come names the run, whichever rank that is.
        store = distributed_c10d._get_default_store()
        name = store.compare_set(f"trainscope/run_name/{next(_attached)}", "", name).decode()
    return config.model_copy(update={"run_name": name})


def highest(score: float | None) -> float | None:
    """Return the highest score of any rank, None if no rank has one. Every rank must call it."""
    if not is_distributed():
        return score
    on_gpu = "gloo" not in dist.get_backend() and torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    # Two numbers: the score may be infinite, and any number may be a score.
    votes = torch.tensor([0.0 if score is None else 1.0, -torch.inf if score is None else score], device=device)
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    stop, top = votes.tolist()
    return top if stop else None
