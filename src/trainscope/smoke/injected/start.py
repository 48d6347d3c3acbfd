"""Starts the recorder in a process that has just imported torch."""

from __future__ import annotations

import atexit
import json
import os
import random
import sys

import torch

from ..left_out import LEFT_OUT
from . import gradient_hooks, hooks, loaders, patches, rerouting, sight
from .batches import Batches
from .omission import Omission
from .recorder import Recorder


def start() -> None:
    """Read what the parent wants from the environment, seed if asked, and install all hooks."""
    wanted = json.loads(os.environ["TRAINSCOPE_SMOKE"])
    if wanted["seed"] is not None:
        seed(int(wanted["seed"]))
    with open(os.path.join(wanted["folder"], LEFT_OUT), encoding="ascii") as file:  # noqa: PTH118, PTH123
        skip = [int(number) for number in json.load(file)]
    undo = wanted["method"] == "skip_update"
    batches, omission = Batches(int(wanted["loader"]), () if undo else skip), Omission(skip if undo else ())
    recorder = Recorder(int(wanted["steps"]), wanted["folder"], batches, omission)
    hooks.install(recorder)
    gradient_hooks.install(recorder)
    sight.install(recorder)
    rerouting.install(recorder)
    loaders.install(recorder)
    patches.suspend_for_script()
    atexit.register(recorder.guard.hook("end", recorder.finish), "script")


def seed(value: int) -> None:
    """Seed every global generator, as ``--seed`` asks; a script that seeds again has the last word."""
    random.seed(value)
    torch.manual_seed(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value % 2**32)
