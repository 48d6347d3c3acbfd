"""Turns a record into the facts of :data:`trainscope.smoke.facts.CONFIG`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainscope.smoke.batches import Batches
from trainscope.smoke.command import Wish
from trainscope.smoke.coverage import coverage, loaders
from trainscope.smoke.records import Record, gathered

Facts = dict[str, Any]
CANCELS = 1e-6
"""Share of the whole gradient's norm that is rounding in single precision: ten times what sums of a batch leave."""


def facts_of(record: Record, wish: Wish, *, ranks: int) -> Facts:
    """Return every fact, nested as its dotted key says, with lists as lists."""
    begin = record.begin
    smoke: Facts = {
        "steps": len(record.steps),
        "steps_wanted": wish.steps,
        "seed": wish.seed,
        "ended": "steps" if len(record.steps) >= wish.steps else "script",
        "ranks": ranks,
        "rank": record.rank,
        "faults": record.faults,
        "model": begin["model"],
        "parameters": begin["parameters"],
        "sharded": begin["sharded"],
        "compiled": record.end.get("compiled", False),
        "autocast": list(record.end.get("autocast", ())),
        "rows": list(record.end.get("rows", ())),
        "rows_evaluated": list(record.end.get("rows_evaluated", ())),
        "checkpointed": record.end.get("checkpointed", False),
        "dropout_used": record.end.get("dropout_used"),
        "first_step_random": record.end.get("random"),
        "first_step_masks": record.end.get("masks"),
        "data_loader": any(part["batches"] for row in record.steps for part in row["parts"]),
        "training_loader": Batches(record).loader,
        "skip_batches": None if wish.skip is None else list(wish.skip),
        "skip_method": None if wish.skip is None else wish.method,
        "dropped_batches": [row["position"] for row in record.dropped],
        "dropped_hashes": [row["hash"] for row in record.dropped],
        "loaders": loaders(record),
        **dict(zip(("samples_again", "samples_changed"), record.end.get("samples", (None, None)), strict=True)),
        **_decay(record),
        "batches": coverage(record),
        **_parameters(record),
        **_modes(record),
        **_nonfinite(record),
        **_labels(record),
    }
    stepped = [n for n in sorted(record.optimizers) if any(n in names for names in record.names)]
    smoke["optimizers"] = len(stepped)
    for place, number in enumerate(stepped):
        smoke[f"optimizer{place}"] = _optimizer(record.optimizers[number])
    smoke["schedulers"] = len(record.schedulers)
    for place, number in enumerate(sorted(record.schedulers)):
        row = record.schedulers[number]
        smoke[f"scheduler{place}"] = {"class": row["class"], **row["options"]}
    smoke["declared"] = list(record.declared.get("facts", ()))
    smoke["schedulers_unused"] = [
        {"class": row["class"], **{key: row["options"].get(key) for key in ("warmup", "horizon")}}
        for row in record.declared.get("schedulers", ())
        if row["number"] not in record.schedulers
    ]
    return {"smoke": smoke, "env": begin["environment"]}


def flat(facts: Mapping[str, Any], depth: int = 0) -> Facts:
    """Return facts as a run's configuration holds them: lists, and objects that are values, as JSON text."""
    found: Facts = {}
    for key, value in facts.items():
        if isinstance(value, dict) and (depth == 0 or key == "model" or key.startswith(("optimizer", "scheduler"))):
            found[key] = flat(value, depth + 1)
        elif isinstance(value, (dict, list)):
            found[key] = json.dumps(value, sort_keys=True, ensure_ascii=False)
        else:
            found[key] = value
    return found


def _parameters(record: Record) -> Facts:
    rows: Sequence[Sequence[Any]] = record.begin["parameters"] or ()
    frozen = [row[0] for row in rows if row[3] == "frozen"]
    left_out = [row[0] for row in rows if row[3] == "left out"]
    got = {name for row in record.steps for name in row["left_out"]}
    fixed = set(frozen)
    ran = set(record.end.get("modules_used", ()))
    names = record.layers()
    shapes = {row[0]: row[1] for row in rows}
    flat = np.array([len(shapes.get(name, ())) == 1 for name in names], dtype=bool)
    place = {name: at for at, name in enumerate(names)}
    gradient, moved = np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=bool)
    weighs = np.zeros(len(names), dtype=bool)
    for step in range(len(record.steps)):
        applied = gathered(record, step, "applied", place)
        gradient |= ~(applied < 0) & _held(record, step, place)
        weighs |= ~(applied <= CANCELS * np.sqrt(np.nansum(np.square(np.maximum(applied, 0.0)))))
        moved |= (gathered(record, step, "updates", place) != 0) & _held(record, step, place)
    return {
        "frozen": frozen,
        "frozen_used": [name for name in frozen if name.rpartition(".")[0] in ran],
        "not_in_optimizer": left_out,
        "not_in_optimizer_used": [name for name in left_out if name in got],
        "never_gradient": [name for name, ever in zip(names, gradient, strict=True) if not ever and name not in fixed],
        "never_weighed": [
            name
            for name, heavy, given in zip(names, weighs | ~flat, gradient, strict=True)
            if given and not heavy and name not in fixed
        ],
        "never_moved": [name for name, ever in zip(names, moved, strict=True) if not ever and name not in fixed],
    }


def _held(record: Record, step: int, place: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which layers an optimizer of this step has."""
    found = np.zeros(len(place), dtype=bool)
    for part in record.steps[step]["parts"]:
        found[[place[name] for name in record.names[step][part["optimizer"]]]] = True
    return found


def _modes(record: Record) -> Facts:
    names = {name for row in record.steps for part in row["parts"] for name in part["eval_modules"]}
    rows = [row.get("evaluated") or {} for row in (*record.steps[1:], record.end)]
    keys = {"": "forwards", "_with_gradient": "with_gradient", "_in_train_mode": "in_train_mode"}
    counts = {f"evaluations{name}": sum(row.get(key, 0) for row in rows) for name, key in keys.items()}
    return {"eval_mode_modules": sorted(names), **counts}


def _nonfinite(record: Record) -> Facts:
    names = record.layers()
    place = {name: at for at, name in enumerate(names)}
    found: Facts = {
        "nonfinite_step": None,
        "nonfinite_gradients": [],
        **{f"nonfinite_{key}": record.nonfinite.get(key) for key in ("operation", "module", "place", "output")},
    }
    for step, row in enumerate(record.steps):
        held = _held(record, step, place)
        bad = ~np.isfinite(gathered(record, step, "applied", place)) & held
        weights = ~np.isfinite(gathered(record, step, "weights", place)) & held
        losses = [part["loss"] for part in row["parts"] if part["loss"] is not None]
        # A GradScaler skips steps whose gradients overflow: that is how it finds its scale.
        skipped = any(part["skipped"] for part in row["parts"])
        if (bad.any() and not skipped) or weights.any() or not all(map(math.isfinite, losses)):
            found["nonfinite_step"] = step
            found["nonfinite_gradients"] = [name for name, is_bad in zip(names, bad, strict=True) if is_bad]
            break
    return found


def _decay(record: Record) -> Facts:
    """Return how many numbers have a weight decay, of all and of those in vectors; None above 4096 tensors."""
    if not record.begin["parameters"]:
        return {"decayed": None, "decayed_vectors": None}
    shapes = {row[0]: row[1] for row in record.begin["parameters"] or () if row[3] != "frozen"}
    decayed: set[str] = set()  # by name: an optimizer that was built anew, such as after a checkpoint, is no second one
    for row in record.optimizers.values():
        names = iter(row["names"])
        for group, size in zip(row["groups"], row["sizes"], strict=True):
            held = [name for _, name in zip(range(size), names, strict=False)]
            if group.get("weight_decay"):
                decayed.update(name for name in held if name in shapes)
    numel = {name: math.prod(shapes[name]) for name in decayed}
    return {
        "decayed": sum(numel.values()),
        "decayed_vectors": sum(size for name, size in numel.items() if len(shapes[name]) < 2),
    }


def _labels(record: Record) -> Facts:
    first = [part["cross_entropy"] for part in record.steps[0]["parts"] if part["cross_entropy"] is not None]
    return {
        "vocabulary": record.labels.get("classes"),
        "loss_reduction": record.labels.get("reduction"),
        "label_smoothing": record.labels.get("smoothing"),
        "initial_cross_entropy": first[0] if first else None,
        "label_entropy": record.steps[-1]["label_entropy"],
    }


def _optimizer(row: Mapping[str, Any]) -> Facts:
    groups: Sequence[Mapping[str, Any]] = row["groups"]
    found: Facts = {"class": row["class"], "groups": len(groups), "tensors": row["tensors"], **groups[0]}
    for key in groups[0]:
        values = [group.get(key) for group in groups]
        if any(value != values[0] for value in values):
            found[f"{key}.groups"] = values
    return found
