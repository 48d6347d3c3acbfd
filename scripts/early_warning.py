"""Which signals of a training alarm before its loss diverges, and how often they do so in a healthy one.

For verify_*.py. Each seed is recorded three times (``divergences.py``), and every signal is judged by a rule of
trainscope at its defaults, which sees no later step: the live detectors, or the rule by which a story tells that a
statistic of a layer has left its usual range. Rules that others use are shown beside them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import torch
from divergences import CLIMBS, CONTROL, END, GONE, RAMP, divergence, record
from recordings import Recording, load
from small_gpt import Kind

from trainscope.core.robust import MAD_TO_SIGMA
from trainscope.core.run import FloatArray
from trainscope.detectors import attention_logits
from trainscope.diagnosis.departures import Watch, departures
from trainscope.diagnosis.incidents import REACH
from trainscope.diagnosis.watched import LAYERS, LOAD
from trainscope.online import make_detector

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench" / "detectors"))

from intervals import rate

CALM = 60
"""Steps that nothing is judged on: the warm-up of the live detectors."""
SEEN = 1.5
"""Times the usual loss (2.5 to 2.7): what a look at the curve shows. It is then worse than letter frequencies."""
BASELINE, MARGIN, IN_A_ROW = 40, 3.0, 3
"""Steps before the climb, MADs above their median, steps: how the claim about kurtosis was judged."""

Judge = Callable[[Recording], list[int]]


def by_loss(recording: Recording) -> list[int]:
    """Return the alarms of the live detector of the loss."""
    return _live("changepoint", recording.loss)


def by_shares(detector: str) -> Judge:
    """Return the judge that shows each router or addressor to a live detector of its own, as the recorder does."""
    kind = make_detector(detector, {}).signal.removesuffix("_share")

    return lambda recording: _merged(_live(detector, shares) for shares in _shares(recording, kind))


def by_departure(statistic: str, of: str = "") -> Judge:
    """Return the judge that asks, at each step, what a story asks around an incident.

    Parameters
    ----------
    statistic : str
    of : str
        Only layers with this in their name; without it, of any.
    """
    return lambda recording: _departed(_rows(recording, statistic, of), LAYERS[statistic].watch)


def by_load(kind: str) -> Judge:
    """Return the judge that asks the same of the largest share of each ``router`` or ``addressor``."""
    return lambda recording: _departed(np.stack(_shares(recording, kind)), LOAD.watch)


def by_limit(recording: Recording) -> list[int]:
    """Return the steps at which the median of the last ten largest logits of a layer passes the detector's limit."""
    limit = attention_logits.Params()
    over = []
    for row in recording.layers[attention_logits.LOGITS].values():
        medians = np.median(np.lib.stride_tricks.sliding_window_view(row, limit.window), axis=1)
        over.append([int(i) + limit.window - 1 for i in np.flatnonzero(medians > limit.most)])
    return _merged(over)


def by_cusum(statistic: str, sign: float = 1.0) -> Judge:
    """Return the judge that treats the farthest layer's statistic as if it were a loss."""
    return lambda recording: _live("changepoint", (sign * _rows(recording, statistic)).max(axis=0))


def by_margin(statistic: str) -> Judge:
    """Return the judge of the claim: above a baseline that is taken once, by three MADs, three steps in a row."""

    def judge(recording: Recording) -> list[int]:
        highest = _rows(recording, statistic).max(axis=0)
        usual = highest[RAMP - BASELINE : RAMP]
        middle = float(np.median(usual))
        limit = middle + MARGIN * MAD_TO_SIGMA * float(np.median(np.abs(usual - middle)))
        rows = np.lib.stride_tricks.sliding_window_view(highest[RAMP:] > limit, IN_A_ROW)
        return [RAMP + IN_A_ROW - 1 + int(i) for i in np.flatnonzero(rows.all(axis=1))]

    return judge


def _rows(recording: Recording, statistic: str, of: str = "") -> FloatArray:
    return np.stack([values for layer, values in recording.layers[statistic].items() if of in layer])


def _shares(recording: Recording, kind: str) -> list[FloatArray]:
    return [shares for block, shares in recording.shares.items() if block.endswith(kind)]


def _departed(rows: FloatArray, watch: Watch) -> list[int]:
    steps = np.arange(rows.shape[1])
    return [step for step in range(CALM, len(steps)) if any(departures(steps, rows, watch, step, step))]


def _live(detector: str, values: FloatArray) -> list[int]:
    one = make_detector(detector, {})
    return [step for step, value in enumerate(values) if one.update(float(value)) is not None]


def _merged(alarms: Iterable[Sequence[int]]) -> list[int]:
    return sorted({step for steps in alarms for step in steps})


def events(alarms: Sequence[int]) -> list[int]:
    """Return the first step of each run of alarms; as in a story, what comes within 20 steps is the same event."""
    return [*alarms[:1], *(step for before, step in pairwise(alarms) if step > before + REACH)]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one rule did with one seed."""

    ends: Mapping[str, tuple[int | None, int | None]]
    """Climb to the steps at which its loss is clearly up, and ten times what it was."""
    alarms: Mapping[str, Sequence[int]]
    """Climb or control to the steps of its alarms."""


@dataclass(frozen=True, slots=True)
class Leads:
    """What one rule did with one kind of climb, over all seeds."""

    seen: tuple[int | None, ...]
    """Steps from the first alarm of the climb to the clear rise of the loss; None without an alarm."""
    gone: tuple[int | None, ...]
    """The same to the loss that is ten times what it was."""
    flagged: int
    """Controls that alarm in the steps between the beginning of the climb and the clear rise."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Events in the controls, all of them false alarms."""

    learning: int
    """While the first things are learned, from step 60 to the climb of the others."""
    settled: int
    """From there on."""
    flagged: int
    """Controls with such an event."""
    seeds: int

    def rates(self) -> str:
        """Return both as false alarms in 10,000 steps, with the upper end of the exact 95 % interval."""
        parts = ((self.learning, RAMP - CALM), (self.settled, END - RAMP))
        found = [(count, rate(count, steps * self.seeds)) for count, steps in parts]
        return " | ".join(f"{count}: {one.value:.1f} (at most {one.high:.1f})" for count, one in found)


def leads(seeds: Sequence[Seen], climb: str) -> Leads:
    """Count over the seeds whose loss diverged."""
    seen: list[int | None] = []
    gone: list[int | None] = []
    flagged = 0
    for seed in seeds:
        up, far = seed.ends[climb]
        if up is None or far is None:
            continue
        first = next((step for step in seed.alarms[climb] if step >= RAMP), None)
        seen.append(None if first is None else up - first)
        gone.append(None if first is None else far - first)
        flagged += any(RAMP <= step < up for step in seed.alarms[CONTROL])
    return Leads(tuple(seen), tuple(gone), flagged)


def quiet(seeds: Sequence[Seen]) -> Quiet:
    """Count the events of the controls."""
    found = [events([s for s in seed.alarms[CONTROL] if s >= CALM]) for seed in seeds]
    late = [sum(step >= RAMP for step in steps) for steps in found]
    return Quiet(sum(map(len, found)) - sum(late), sum(late), sum(map(bool, late)), len(seeds))


def span(found: Sequence[int | None]) -> str:
    """Return the range of some leads, their median, how many are ahead, and how many never came."""
    came = sorted(lead for lead in found if lead is not None)
    if not came:
        return f"none of {len(found)}"
    silent = f", silent in {len(found) - len(came)}" if len(came) < len(found) else ""
    return f"{came[0]} to {came[-1]}, median {median(came):g}, ahead in {sum(x > 0 for x in came)}/{len(found)}{silent}"


def measure(kind: Kind, judge: Judge, seeds: Iterable[int], cache: Path) -> list[Seen]:
    """Return what a rule does with each seed."""
    found = []
    for seed in seeds:
        record(kind, seed, cache)
        runs = {part: load(cache, kind, part, seed) for part in (CONTROL, *CLIMBS)}
        losses = {climb: runs[climb].loss.tolist() for climb in CLIMBS}
        ends = {climb: (divergence(loss, SEEN), divergence(loss, GONE)) for climb, loss in losses.items()}
        found.append(Seen(ends, {part: judge(run) for part, run in runs.items()}))
    return found


def options(about: str) -> argparse.Namespace:
    """Return the options that all of the scripts have."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[4, 5], help="each trained three times; docs: 4 to 15")
    parser.add_argument("--cache", type=Path, default=Path("out/early_warning"), help="where recordings are kept")
    torch.set_num_threads(1)
    return parser.parse_args()


def report(about: str, kind: Kind, rules: Mapping[str, Judge]) -> None:
    """Measure each rule and print its rows of the tables in docs/evidence.md."""
    asked = options(about)
    found = {title: measure(kind, judge, asked.seeds, asked.cache) for title, judge in rules.items()}
    for climb, growth in CLIMBS.items():
        over = f"over loss x{GONE:g} | over loss x{SEEN} | control, same steps |"
        print(f"\n| learning rate x{growth} a step | {over}")
        print("| --- | --- | --- | --- |")
        for title, seeds in found.items():
            one = leads(seeds, climb)
            print(f"| {title} | {span(one.gone)} | {span(one.seen)} | {one.flagged}/{len(one.seen)} |")
    parts = f"steps {CALM} to {RAMP - 1} | steps {RAMP} to {END - 1} | controls flagged there"
    print(f"\n| healthy: alarms, and in 10,000 steps | {parts} |")
    print("| --- | --- | --- | --- |")
    for title, seeds in found.items():
        calm = quiet(seeds)
        print(f"| {title} | {calm.rates()} | {calm.flagged}/{calm.seeds} |")
