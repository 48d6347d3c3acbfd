"""What the script was told: how many steps it is to train, and how long to warm up."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

Fact = dict[str, Any]
ARGUMENTS = {
    "total_steps": (
        "max_steps", "total_steps", "train_steps", "training_steps", "max_train_steps", "num_train_steps",
        "num_training_steps", "num_steps", "n_steps", "steps", "max_iters", "num_iters", "iters", "iterations",
    ),
    "warmup_steps": ("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "n_warmup_steps", "warmup_iters"),
    "epochs": ("epochs", "num_epochs", "max_epochs", "n_epochs", "num_train_epochs"),
}  # fmt: skip
"""Names of command-line options whose unit their name says."""
_TRAINERS = (
    ("transformers", "transformers.trainer"),
    ("lightning", "lightning.pytorch"),
    ("lightning", "pytorch_lightning"),
)


def declared() -> list[Fact]:
    """Return what is declared, each as ``what``, ``value``, ``name`` and ``source``.

    A trainer's own settings come before parsed arguments: it is the trainer that counts.
    """
    objects = gc.get_objects()
    kinds = _kinds(set(map(type, objects)))
    held = [(kinds[type(o)], o) for o in objects if type(o) in kinds]
    del objects
    found: list[Fact] = []
    for kind, holder in held:
        found += _READERS[kind](holder)
    return list(_agreed(found))


def _kinds(types: set[type]) -> dict[type, str]:
    wanted: list[tuple[str, type]] = [("arguments", argparse.Namespace)]
    for kind, module in _TRAINERS:
        trainer = getattr(sys.modules.get(module), "Trainer", None)
        if isinstance(trainer, type):
            wanted.append((kind, trainer))
    return {t: kind for t in types for kind, base in wanted if issubclass(t, base)}


def _of_transformers(trainer: Any) -> list[Fact]:
    args, steps = trainer.args, int(trainer.state.max_steps)
    if steps <= 0:
        return []
    warm_up = args.get_warmup_steps(steps)
    return [_fact("total_steps", steps, "max_steps", "transformers Trainer")] + (
        [_fact("warmup_steps", warm_up, "warmup_steps", "TrainingArguments")] if warm_up > 0 else []
    )


def _of_lightning(trainer: Any) -> list[Fact]:
    steps, epochs = trainer.max_steps, trainer.max_epochs
    found = []
    if isinstance(steps, int) and steps > 0:
        found.append(_fact("total_steps", steps, "max_steps", "Lightning Trainer"))
    elif isinstance(epochs, int) and epochs > 0:
        found.append(_fact("epochs", epochs, "max_epochs", "Lightning Trainer"))
    return found


def _of_arguments(given: argparse.Namespace) -> list[Fact]:
    return [
        _fact(what, value, name, "arguments")
        for name, value in vars(given).items()
        for what, names in ARGUMENTS.items()
        if name.lower() in names and isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1
    ]


def _fact(what: str, value: float, name: str, source: str) -> Fact:
    return {"what": what, "value": float(value), "name": name, "source": source}


def _agreed(found: list[Fact]) -> Iterator[Fact]:
    """Yield one fact of each kind; none where two arguments say different things."""
    for what in ARGUMENTS:
        facts = [f for f in found if f["what"] == what]
        trainers = [f for f in facts if f["source"] != "arguments"]
        chosen = trainers or facts
        if chosen and len({f["value"] for f in chosen}) == 1:
            yield min(chosen, key=lambda f: str(f["name"]))


_READERS: dict[str, Callable[[Any], list[Fact]]] = {
    "transformers": _of_transformers,
    "lightning": _of_lightning,
    "arguments": _of_arguments,
}
