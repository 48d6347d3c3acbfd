"""The few numbers that a person looks for first."""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core.metrics import LOSS_KINDS, Kind, kind
from trainscope.report.document import Metric, RunEntry
from trainscope.report.text import figure, label

MAX_TILES = 5


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its name, and what puts it in proportion."""

    name: str
    value: str
    detail: str


def headline(entry: RunEntry) -> Metric | None:
    """Return the metric that tells most of the run."""
    by_name = {m.name: m for m in entry.metrics if m.count}
    for name in ("train/loss", "eval/loss", "train/reward"):
        if name in by_name:
            return by_name[name]
    some = list(by_name.values())
    losses = [m for m in some if kind(m.name) in LOSS_KINDS or kind(m.name) == Kind.REWARD]
    return max(losses or some, key=lambda m: m.count, default=None)


def tiles_for(entry: RunEntry) -> tuple[Tile, ...]:
    """Return the tiles of one run: its main metric, and the best known of the rest."""
    main = headline(entry)
    tiles = [] if main is None else [_last(main), _best(main)]
    by_name = {m.name: m for m in entry.metrics if m.count and (main is None or m.name != main.name)}
    if "eval/loss" in by_name:
        tiles.append(_last(by_name["eval/loss"]))
    if "train/grad_norm" in by_name:
        norm = by_name["train/grad_norm"]
        tiles.append(Tile("Greatest gradient norm", figure(norm.max), f"last {figure(norm.last)}"))
    if "learning_rate" in by_name:
        rate = by_name["learning_rate"]
        tiles.append(Tile("Peak learning rate", figure(rate.max), f"last {figure(rate.last)}"))
    if "train/tokens_per_second" in by_name:
        speed = by_name["train/tokens_per_second"]
        tiles.append(Tile("Tokens per second", figure(speed.last), f"greatest {figure(speed.max)}"))
    return tuple(tiles[:MAX_TILES])


def _last(metric: Metric) -> Tile:
    return Tile(f"Last {label(metric.name, 24)}", figure(metric.last), f"started at {figure(metric.first)}")


def _best(metric: Metric) -> Tile:
    higher = kind(metric.name) in (Kind.REWARD, Kind.SCORE)
    best, worst = (metric.max, metric.min) if higher else (metric.min, metric.max)
    return Tile(f"Best {label(metric.name, 24)}", figure(best), f"worst {figure(worst)}")
