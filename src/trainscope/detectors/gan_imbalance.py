"""gan_imbalance: one player of an adversarial game has won, and the other learns nothing from it any more.

What it finds
    The loss of the discriminator (or of the generator) pinned near 0 to the end of the run, while the loss of its
    opponent is higher than it was at the start.
Algorithm
    Players are told by their names and paired by the rest of them: ``D_A`` with ``G_A``, ``d_loss`` with
    ``g_loss``, the sum of ``D_real`` and ``D_fake`` with ``G_GAN``. Of about 40 blocks, nine in ten of the last
    stretch must have a median of at most `pinned` of the loss in the first 2 % of the run, over at least `share`
    of the run, and the opponent's level must have risen by a tenth. Losses that go below 0 (Wasserstein)
    have no floor to be pinned to and are not judged.
Parameters
    pinned: largest loss of the winner, as a share of its first level.
    share: smallest part of the run over which it stays there.
    points: fewest logged points.
False positives
    A discriminator that is meant to be far ahead, as with relativistic losses of a small weight.
Misses
    A game that was lost before the first logged point, and one that ends in a draw without learning.
Reference
    M. Arjovsky and L. Bottou, "Towards Principled Methods for Training Generative Adversarial Networks", 2017,
    section 2 (a perfect discriminator gives the generator no gradient).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import Kind, tokens
from trainscope.core.robust import block_medians
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, by_kind, number

BLOCKS = 40
MOSTLY = 0.9
"""Share of the blocks that must agree: a pinned player still has moments."""
LOSS = frozenset({"loss", "losses", "l", "err", "total", "train", "training", "adv", "gan"})
"""Words beside a player that do not say which game it is in."""
PLAYERS = {
    **dict.fromkeys(("d", "disc", "dis", "discriminator"), "discriminator"),
    **dict.fromkeys(("g", "gen", "generator"), "generator"),
}


@dataclass(frozen=True, slots=True)
class Params:
    """When a player has won."""

    pinned: float = 0.02
    """Of its first level, which is near that of balance; a strong but useful discriminator keeps a tenth."""
    share: float = 0.25
    """Of the run."""
    points: int = 100
    """Logged points."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each game that one player has won."""
    games = _games(by_kind(run, Kind.ADVERSARIAL_LOSS))
    if not games:
        return Skipped("needs the losses of a generator and a discriminator")
    findings = []
    for game in games:
        for winner, loser in (game, game[::-1]):
            start = _won_from(winner, loser, params)
            if start is not None:
                findings.append(_finding(winner, loser, start))
    return findings


def _games(losses: list[Series]) -> list[tuple[Series, Series]]:
    """Return pairs of discriminator and generator loss."""
    found: dict[str, dict[frozenset[str], Series]] = {"discriminator": {}, "generator": {}}
    for loss in losses:
        words = tokens(loss.name)
        players = {PLAYERS[w] for w in words if w in PLAYERS}
        if len(players) == 1:
            rest = frozenset(w for w in words if w not in PLAYERS and w not in LOSS)
            found[players.pop()].setdefault(rest, loss.finite())
    ours, theirs = found["discriminator"], found["generator"]
    real, fake = ours.get(frozenset({"real"})), ours.get(frozenset({"fake"}))
    if frozenset() not in ours and real is not None and fake is not None and np.array_equal(real.step, fake.step):
        ours[frozenset()] = Series(f"{real.name} + {fake.name}", real.step, real.value + fake.value)
    return [(ours[rest], theirs[rest]) for rest in ours if rest in theirs]


def _won_from(winner: Series, loser: Series, params: Params) -> int | None:
    """Return the index from which the winner is pinned to the end, None if it is not."""
    if min(len(winner), len(loser)) < params.points or winner.value.min() < 0.0:
        return None
    size = max(1, len(winner) // BLOCKS)
    blocks = block_medians(winner.value, size)
    pinned = blocks <= params.pinned * _first(winner)
    agreed = np.cumsum(pinned[::-1])[::-1] / np.arange(len(blocks), 0, -1)
    since = np.flatnonzero(pinned & (agreed >= MOSTLY))
    if not len(since) or len(blocks) - since[0] < params.share * len(blocks):
        return None
    start = int(since[0]) * size
    after = float(np.median(loser.value[loser.step >= winner.step[start]]))
    return start if after >= 1.1 * _first(loser) else None


def _first(loss: Series) -> float:
    return float(np.median(loss.value[: max(5, len(loss) // 50)]))


def _finding(winner: Series, loser: Series, start: int) -> Finding:
    level = float(np.median(winner.value[start:]))
    after = loser.value[loser.step >= winner.step[start]]
    before = _first(loser)
    begin, end = int(winner.step[start]), int(winner.step[-1])
    return Finding(
        detector="gan_imbalance",
        severity=Severity.WARNING,
        title="One player has won",
        message=(
            f"{winner.name} stays near 0 (median {number(level)}) from step {begin} to the end, step {end}, while "
            f"{loser.name} went from {number(before)} to {number(float(np.median(after)))}: it gets no gradient."
        ),
        metric=winner.name,
        start_step=begin,
        end_step=end,
        peak_step=begin,
        evidence={"level": level, "loser": loser.name, "opponent": float(np.median(after)), "opponent_before": before},
        fixes=(
            "Weaken the winner: a lower learning rate, fewer updates, label smoothing, noise on its input.",
            "Use a loss with a gradient wherever the players stand: Wasserstein with penalty, or R1 regularisation.",
        ),
    )


DETECTOR = Detector("gan_imbalance", "One player has won", ("g_loss", "d_loss"), Params(), detect)
