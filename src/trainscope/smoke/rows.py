"""Turns one recorded step into the values of :data:`trainscope.smoke.record.SERIES` and per-layer arrays."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.smoke.batches import Batches
from trainscope.smoke.record import OBJECTIVES
from trainscope.smoke.records import Record, Row, gathered
from trainscope.smoke.reductions import last, load_entropy, norm, together, total
from trainscope.store.block import LayerBlock

Value = float | int | bool | None


class Rows:
    """The steps of one record.

    Parameters
    ----------
    record : Record
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self.layers = record.layers()
        self._place = {name: place for place, name in enumerate(self.layers)}
        self._routers = [place for name, place in self._place.items() if _is_router(name)]
        frozen = {row[0] for row in record.begin["parameters"] or () if row[3] == "frozen"}
        self._trained = np.array([name not in frozen for name in self.layers], dtype=bool)
        self._seen: set[int] = set()
        self._batches = Batches(record)

    def block(self, step: int) -> LayerBlock:
        """Return the statistics of every layer at a step."""
        raw, weights, updates = (
            gathered(self._record, step, key, self._place) for key in ("raw", "weights", "updates")
        )
        gradients, measured = ~(raw < 0) & ~self._absent(step), ~self._absent(step)
        columns = {
            "grad_l2_norm": raw,
            "weight_l2_norm": weights,
            "update_l2_norm": updates,
            "update_ratio": np.divide(updates, weights, out=np.full_like(updates, np.nan), where=weights != 0),
        }
        # A ratio to nothing is no number: of weights that are still 0 it is missing, not infinite.
        valid = dict.fromkeys(columns, measured)
        valid |= {"grad_l2_norm": gradients, "update_ratio": measured & (weights != 0)}
        return LayerBlock(self.layers, columns, valid)

    def _absent(self, step: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which layers no optimizer of this step has."""
        found = np.ones(len(self.layers), dtype=bool)
        for part in self._record.steps[step]["parts"]:
            found[[self._place[name] for name in self._record.names[step][part["optimizer"]]]] = False
        return found

    def shares(self, step: int) -> dict[str, FloatArray]:
        """Return the shares of experts of each router."""
        found = {}
        for part in self._record.steps[step]["parts"]:
            for name, counts in part["shares"].items():
                tokens = np.asarray(counts, dtype=np.float64)
                if tokens.sum() > 0:
                    found[name] = tokens / tokens.sum()
        return found

    def scalars(self, step: int) -> dict[str, Value]:
        """Return the scalars of a step, under the names the store has for them or else their own."""
        row = self._record.steps[step]
        parts: Sequence[Row] = row["parts"]
        held = ~self._absent(step)
        raw, applied, weights, updates = (
            gathered(self._record, step, key, self._place)[held] for key in ("raw", "applied", "weights", "updates")
        )
        trained = self._trained[held]
        routers = np.isin(np.flatnonzero(held), self._routers)
        rates = [rate for part in parts for rate in part["rates"]]
        seconds, cpu = row["time"] or (None, None)
        attention = row["attention"] or {}
        after = self._record.steps[step + 1] if step + 1 < len(self._record.steps) else self._record.end
        return {
            "loss": total(part["loss"] for part in parts),
            "grad_norm_before_clip": norm(raw),
            "grad_norm_after_clip": norm(applied),
            "lr": rates[0] if rates else None,
            "step_time_ms": None if seconds is None else 1e3 * seconds,
            "optimizer_m_norm": together(part["m"] for part in parts),
            "optimizer_v_norm": together(part["v"] for part in parts),
            "update_norm": norm(updates),
            "weight_norm": norm(weights),
            "cpu_memory_mb": row["memory"],
            "cuda_memory_mb": row["cuda"][0],
            "grad_scale": last(part["scale"] for part in parts),
            "step_skipped": any(part["skipped"] for part in parts),
            "micro_batches": sum(part["micro_batches"] for part in parts),
            "wall_time": row["wall"],
            "train/cpu_step_time": cpu,
            "train/worker_cpu_time": self._workers(step),
            "smoke/pace": row["pace"],
            "memory/peak_mb": row["peak"],
            "memory/cuda_peak_mb": row["cuda"][1],
            "memory/live_graphs": row["graphs"],
            **_calls(parts),
            **_parameters(applied[trained], weights, updates[trained], parts),
            "smoke/optimizer_is_first": any(p["fresh"] and p["optimizer"] == row["created"] - 1 for p in parts),
            "smoke/router_gradient": norm(raw[routers]),
            "smoke/optimizers_created": row["created"],
            "smoke/learning_rate_min": min(rates, default=None),
            "smoke/learning_rate_max": max(rates, default=None),
            "smoke/weight_decay": max(part["decay"] for part in parts),
            "smoke/buffer_update": row["buffers"],
            "smoke/rng_hash": row["rng"],
            "smoke/label_entropy": row["label_entropy"],
            **self._data(parts),
            **self._batches.scalars(step),
            **_evaluation(after.get("evaluated")),
            **_objectives(parts),
            "smoke/router_load_entropy": load_entropy(self.shares(step)),
            "attention/logit_max": attention.get("logit_max"),
            "attention/entropy": attention.get("entropy"),
            **_counters(parts),
        }

    def _workers(self, step: int) -> float | None:
        """Return the CPU seconds of the loaders' workers since the step before."""
        now = self._record.steps[step]["workers"]
        before = self._record.steps[step - 1]["workers"] if step else None
        return None if now is None or before is None else max(0.0, now - before)

    def _data(self, parts: Sequence[Row]) -> dict[str, Value]:
        def hashed(key: str) -> int | None:
            hashes = [value for part in parts for value in part[key]]
            return zlib.crc32(b"".join(struct.pack("<I", value) for value in hashes)) if hashes else None

        inputs, batches = hashed("inputs"), hashed("batches")
        batch = inputs if batches is None else batches
        repeated = None if batch is None else batch in self._seen
        if batch is not None:
            self._seen.add(batch)
        moments = last(part["moments"] for part in parts) or (None, None)
        return {
            "smoke/batch_hash": batch,
            "smoke/input_hash": inputs,
            "smoke/target_hash": hashed("targets"),
            "smoke/data_order_hash": hashed("order"),
            "smoke/repeated_batch": repeated,
            "smoke/inputs": last(part["numbers"] or None for part in parts),
            "smoke/input_mean": moments[0],
            "smoke/input_std": moments[1],
            "smoke/samples": sum(part["samples"] for part in parts) or None,
            "smoke/cross_entropy": last(part["cross_entropy"] for part in parts),
            "smoke/ignored_fraction": last(part["ignored"] for part in parts),
        }


def _parameters(
    applied: FloatArray, weights: FloatArray, updates: FloatArray, parts: Sequence[Row]
) -> dict[str, Value]:
    counters = [part["state_step"] for part in parts if part["state_step"] is not None]
    return {
        "smoke/parameters_without_gradient": int((applied < 0).sum()),
        "smoke/parameters_zero_gradient": int((applied == 0).sum()),
        "smoke/parameters_unmoved": int((updates == 0).sum()),
        "smoke/parameters_nonfinite": int((~np.isfinite(applied)).sum()),
        "smoke/weights_nonfinite": int((~np.isfinite(weights)).sum()),
        "smoke/optimizer_state_step": min(counters, default=None),
        "smoke/optimizer_state_lost": sum(part["state_lost"] for part in parts),
        "smoke/optimizer_state_tensors": sum(part["state_tensors"] for part in parts),
    }


def _calls(parts: Sequence[Row]) -> dict[str, Value]:
    clip = last(part.get("clip") for part in parts) or (None, None, None, None)
    summed = "backward_calls zero_grad_calls zero_grad_after_backward scheduler_steps clip_calls".split()  # noqa: SIM905
    return {
        "smoke/objective": total(part["objective"] for part in parts),
        **{f"smoke/{name}": sum(part[name] for part in parts) for name in summed},
        "smoke/optimizer_steps": len(parts),
        "smoke/stale_gradients": max(part["stale"] for part in parts),
        "smoke/clip_max_norm": clip[0],
        "smoke/clip_norm_before": clip[1],
        "smoke/clip_backward_calls": clip[2],
        "smoke/clip_scaled": clip[3],
        "smoke/eval_mode_modules": sum(len(part["eval_modules"]) for part in parts),
        "smoke/train_mode_modules": sum(part["train_modules"] for part in parts),
    }


def _evaluation(found: Mapping[str, Any] | None) -> dict[str, Value]:
    moments, output = ((found or {}).get(key) or (None, None) for key in ("moments", "output"))
    numbers = (found or {}).get("numbers") or (None, None, None)
    return {
        "smoke/eval_cross_entropy": (found or {}).get("cross_entropy"),
        "smoke/eval_objective": (found or {}).get("loss"),
        "smoke/eval_labels": (found or {}).get("labels"),
        "smoke/eval_targets": numbers[1],
        "smoke/eval_outputs": numbers[0],
        "smoke/eval_output_mean": output[0],
        "smoke/eval_output_std": output[1],
        "smoke/eval_inputs": numbers[2],
        "smoke/eval_input_mean": moments[0],
        "smoke/eval_input_std": moments[1],
    }


def _objectives(parts: Sequence[Row]) -> dict[str, Value]:
    """Return what each of several optimizers follows, in the order in which they were made."""
    if len(parts) < 2:
        return {}
    ordered = sorted(parts, key=lambda part: int(part["optimizer"]))
    return {name: part["objective"] for name, part in zip(OBJECTIVES, ordered, strict=False)}


def _counters(parts: Sequence[Row]) -> dict[str, Value]:
    rows = [row for part in parts for row in part["counters"] or ()]
    if not rows:
        return {}
    names = ("counted", "chosen", "chosen_in_evaluation")
    return {f"smoke/experts_{name}": sum(row[place] for row in rows) for place, name in enumerate(names)} | {
        "smoke/experts_may_drop": any(row[3] for row in rows)
    }


def _is_router(name: str) -> bool:
    words = {word for part in name.lower().split(".") for word in (part, *part.split("_"))}
    return "router" in words or "gate" in name.lower().split(".")
