"""Small trainings that end in divergence, and which of their signals rose before the loss did; for verify_*.py.

A two-layer GPT of 30,000 parameters learns the documentation that ships with Python. From step 120 on its learning
rate is multiplied by 1.08 at each step until the loss diverges; the control trains on at the same rate. The signals
are taken from the model's own forward and judged by trainscope's live detectors at their defaults.
"""

from __future__ import annotations

import argparse
import json
import math
import pydoc_data.topics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from small_gpt import GPT, LENGTH, Experts, signals
from torch.nn import functional

from trainscope.online import make_detector

STEPS, RAMP, GROWTH, RATE = 220, 120, 1.08, 3e-3
ROWS = 16
CALM = 60
"""Steps that no signal is judged on: everything moves while the first things are learned."""
DIVERGED = 1.5
"""The loss has diverged when it is this many times the median of the 30 steps before the ramp, three steps running."""


def train(kind: str, seed: int, growth: float) -> dict[str, list[float]]:
    """Train, and return each signal a step; ends soon after the loss has diverged."""
    torch.manual_seed(seed)
    text = "\n\n".join(t for _, t in sorted(pydoc_data.topics.topics.items()))
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    data = torch.tensor([number[c] for c in text])
    model = GPT(kind, len(number))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    log: dict[str, list[float]] = {"loss": []}
    for step in range(STEPS):
        ramp = growth ** max(0, step - RAMP)
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 20) * ramp
        starts = torch.randint(len(data) - LENGTH - 1, (ROWS, 1))
        window = data[starts + torch.arange(LENGTH + 1)]
        loss = functional.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        balance = sum((b.mlp.balance for b in model.blocks if isinstance(b.mlp, Experts)), torch.zeros(()))
        optimizer.zero_grad()
        (loss + 0.01 * balance).backward()
        for name, value in {"loss": loss.item(), **signals(model)}.items():
            log.setdefault(name, []).append(value)
        end = divergence(log["loss"]) if step > RAMP else None
        if end is not None and (step >= end + 5 or not math.isfinite(log["loss"][-1])):
            break
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return log


def divergence(loss: Sequence[float]) -> int | None:
    """Return the step from which the loss is diverged for three steps running, or not finite; None if never."""
    level = DIVERGED * median(loss[RAMP - 30 : RAMP])
    for step in range(RAMP, len(loss)):
        if not math.isfinite(loss[step]) or (len(loss) >= step + 3 and min(loss[step : step + 3]) >= level):
            return step
    return None


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal, the live detector that judges it, and how it is handed over."""

    name: str
    detector: str
    turned: Callable[[float], float] = lambda value: value


LOSS = Signal("loss", "changepoint")
KURTOSIS = Signal("kurtosis", "changepoint")
MAXIMUM = Signal("attention maximum", "changepoint")
ENTROPY = Signal("attention entropy", "changepoint", lambda value: -value)
EXPERT = Signal("largest share", "expert_utilization_drift")
SLOT = Signal("largest share", "addressor_concentration_drift")


def alarms(log: Mapping[str, Sequence[float]], signal: Signal) -> list[int]:
    """Return the steps from ``CALM`` on at which the signal's detector alarms."""
    detector = make_detector(signal.detector, {})
    values = log[signal.name]
    heard = [s for s, v in enumerate(values) if detector.update(signal.turned(v)) is not None]
    return [s for s in heard if s >= CALM]


@dataclass(frozen=True, slots=True)
class Leads:
    """What one signal did over all seeds."""

    leads: tuple[int | None, ...]
    """Steps from the first alarm of the ramp to the divergence, negative if it came after; None if it had not come five
    steps after the divergence, where the training ends."""
    undiverged: int
    """Trainings whose loss did not diverge: they have no lead."""
    controls_flagged: int
    false: int
    watched: int
    """Steps of the controls."""

    def line(self, claim: str) -> str:
        """Return one line for people."""
        came = sorted(lead for lead in self.leads if lead is not None)
        early = [lead for lead in came if lead > 0]
        spread = f"lead {came[0]} to {came[-1]} steps, median {median(came):g}" if came else "no lead"
        return (
            f"{spread}; ahead of the loss in {len(early)} of {len(self.leads)}, silent in "
            f"{len(self.leads) - len(came)}; control: {self.controls_flagged} of "
            f"{len(self.leads) + self.undiverged} flagged, {self.false} false alarms in {self.watched:,} steps; "
            f"claimed: {claim}"
        )


def measure(kind: str, signal: Signal, seeds: int, cache: Path) -> Leads:
    """Train each seed with and without the ramp, and count."""
    leads: list[int | None] = []
    undiverged = flagged = false = watched = 0
    for seed in range(seeds):
        broken, control = logs(kind, seed, cache)
        steps = alarms(broken, signal)
        quiet = alarms(control, signal)
        flagged += bool(quiet)
        # Until the ramp both are the same training, and count once.
        false += len(quiet)
        watched += len(control["loss"]) - CALM
        end = divergence(broken["loss"])
        if end is None:
            undiverged += 1
            continue
        first = next((s for s in steps if s >= RAMP), None)
        leads.append(None if first is None else end - first)
    return Leads(tuple(leads), undiverged, flagged, false, watched)


def logs(kind: str, seed: int, cache: Path) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the signals of the training that breaks and of its control; trained once, then kept."""
    found = []
    for name, growth in (("ramp", GROWTH), ("control", 1.0)):
        path = cache / f"{kind}-{name}-{seed}.json"
        if not path.is_file():
            cache.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(train(kind, seed, growth)), encoding="utf-8")
        found.append(json.loads(path.read_text(encoding="utf-8")))
    return found[0], found[1]


def options(about: str) -> argparse.Namespace:
    """Return the options that all of the scripts have."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="trainings with and without the fault; docs have 10")
    parser.add_argument("--cache", type=Path, default=Path("out/early_warning"), help="where trainings are kept")
    torch.set_num_threads(1)
    return parser.parse_args()


def report(about: str, kind: str, rows: Mapping[str, tuple[Signal, str]]) -> None:
    """Measure each signal and print a line for it."""
    asked = options(about)
    for title, (signal, claim) in rows.items():
        print(f"{title}: {measure(kind, signal, asked.seeds, asked.cache).line(claim)}")
