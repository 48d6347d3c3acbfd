"""What a batch looks like before the model has seen it: a few numbers that garbage, repetition and padding move.

Integer batches (tokens) have an entropy, a repeated share and a padded share; floating-point ones a mean, a standard
deviation and a share of NaN and infinity. The cost is bounded by a sample, which stays where the batch is until its
numbers are wanted: nothing waits for a device, and many samples are worked out together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import torch
from torch import Tensor

MOST_TOKENS = 4_096
"""Tokens of one batch that are looked at, whole rows spread evenly: two to three tenths of a millisecond."""
MOST_FLOATS = 16_384
"""Numbers of one batch whose mean and standard deviation are taken, spread evenly."""
MOST_SUMMED = 4_194_304
"""Numbers among which a single NaN or infinity is found."""
LONGEST_PERIOD = 13
"""Longest n-gram whose repetition is looked for, as in the data filter of OLMo 2 (arXiv:2501.00656, section 3.1)."""
_NOT_TOKENS = frozenset(
    "attention_mask token_type_ids position_ids special_tokens_mask labels label length index indices idx".split()  # noqa: SIM905
)
_TOKENS = ("input_ids", "tokens", "inputs")


class Statistic(IntEnum):
    """Places in the vector of one batch; what a batch has no number for is NaN."""

    SIZE = 0
    """Numbers in the tensor that was looked at, before sampling."""
    TOKEN_ENTROPY = 1
    """Of the batch's own token distribution, nat."""
    REPETITION = 2
    """Share of tokens equal to the one a period of up to 13 before it; the best period of each row, mean over rows."""
    PADDING = 3
    """Share of tokens in a constant run at either end of a row; from the attention mask where the batch has one."""
    MEAN = 4
    STD = 5
    NON_FINITE = 6
    """Share of NaN and infinity."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What is kept of a batch until its numbers are wanted: little, and with few calls."""

    size: int
    """Numbers in the tensor that was looked at."""
    tokens: Tensor | None
    """(rows, length); a copy."""
    given: Tensor | None
    """(4,) padded share by the mask, mean, standard deviation, non-finite share; None where there is none of them."""


def sample(batch: object, most_tokens: int = MOST_TOKENS) -> Sample | None:
    """Return what the statistics of a batch are taken of, on its device.

    Parameters
    ----------
    batch : object
        Whatever a loader gives or a model takes: tensors in any nesting of mappings and sequences.
    most_tokens : int
        Bound on the tokens that are looked at.

    Returns
    -------
    Sample or None
        None where the batch holds no tensor that could be judged.
    """
    found: list[tuple[str, Tensor]] = []
    _gather(batch, "", found)
    tokens = _tokens(found)
    real = [t for _, t in found if t.is_floating_point()]
    if tokens is not None and not real and "attention_mask" not in (name for name, _ in found):
        return Sample(tokens.numel(), _rows(tokens, most_tokens).clone(), None)
    floats = max(real, key=lambda tensor: tensor.numel(), default=None)
    looked_at = floats if tokens is None else tokens
    if looked_at is None:
        return None
    with torch.no_grad():
        mask = next(
            (t for n, t in found if tokens is not None and n == "attention_mask" and t.shape == tokens.shape), None
        )
        given = None
        if mask is not None or floats is not None:
            given = torch.full((4,), math.nan, dtype=_wide(looked_at.device), device=looked_at.device)
            if mask is not None:
                given[0] = 1.0 - mask.to(_wide(mask.device)).mean()
            if floats is not None:
                given[1:] = _of_floats(floats.detach()).to(given.device)
        rows = None if tokens is None else _rows(tokens.detach(), most_tokens).clone()
        return Sample(looked_at.numel(), rows, given)


def statistics(samples: Sequence[Sample]) -> Tensor:
    """Return the statistics of samples, which are on one device, as (samples, 7) in the order of :class:`Statistic`.

    Those of one shape are worked out together: a call costs more than the numbers of one batch.
    """
    device = next(t.device for one in samples for t in (one.tokens, one.given) if t is not None)
    table = torch.full((len(samples), len(Statistic)), math.nan, dtype=_wide(device), device="cpu")
    table[:, Statistic.SIZE] = torch.tensor([one.size for one in samples], dtype=table.dtype, device="cpu")
    table = table.to(device, non_blocking=True)
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, one in enumerate(samples):
        if one.given is not None:
            table[place, Statistic.PADDING :] = one.given
        if one.tokens is not None:
            alike.setdefault(tuple(one.tokens.shape), []).append(place)
    with torch.no_grad():
        for places in alike.values():
            rows = torch.stack([t for place in places if (t := samples[place].tokens) is not None])
            table[places, Statistic.TOKEN_ENTROPY] = entropy(rows.flatten(1))
            table[places, Statistic.REPETITION] = _repetition(rows)
            padding, given = _padding(rows), table[places, Statistic.PADDING]
            table[places, Statistic.PADDING] = torch.where(given.isnan(), padding, given)
    return table


def describe(batch: object, most_tokens: int = MOST_TOKENS) -> Tensor | None:
    """Return the statistics of one batch as a (7,) vector on its device, None where :func:`sample` is."""
    found = sample(batch, most_tokens)
    return None if found is None else statistics([found])[0]


def _gather(value: object, name: str, found: list[tuple[str, Tensor]]) -> None:
    """Add the plain tensors of a batch to `found`, with the keys they stand under."""
    if isinstance(value, Tensor):
        if value.layout == torch.strided and value.dim() and value.numel() and not value.is_meta:
            found.append((name, value))
    elif isinstance(value, (tuple, list)):
        for item in value:
            _gather(item, name, found)
    elif isinstance(value, Mapping) or (hasattr(value, "data") and hasattr(value, "items")):
        for key, item in value.items():
            _gather(item, str(key), found)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            _gather(item, name, found)


def _tokens(found: Sequence[tuple[str, Tensor]]) -> Tensor | None:
    """Return the tensor that most likely holds token ids: not a mask, not the labels of a classifier."""
    whole = [(n, t) for n, t in found if not t.is_floating_point() and not t.is_complex() and t.dtype != torch.bool]
    for wanted in _TOKENS:
        for name, tensor in whole:
            if name == wanted:
                return tensor
    rows = [t for name, t in whole if name not in _NOT_TOKENS and t.dim() >= 2 and t.shape[-1] > 1]
    if rows:
        return rows[0]
    alone = [t for name, t in whole if name not in _NOT_TOKENS]
    return alone[0] if len(found) == 1 and alone and alone[0].shape[-1] > LONGEST_PERIOD else None


def _wide(device: torch.device) -> torch.dtype:
    """Return the widest floating-point type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def _rows(tokens: Tensor, most: int) -> Tensor:
    """Return a view of whole rows, evenly spread, that have up to `most` tokens together."""
    if tokens.dim() == 2 and tokens.numel() <= most:
        return tokens
    rows = tokens.reshape(-1, tokens.shape[-1])[:, :most]
    return rows[:: max(1, math.ceil(rows.numel() / most))]


ROUNDING = 1e-5
"""Nat that rounding can leave of equal tokens; one other among a hundred thousand of them makes 1.2e-4."""


def entropy(tokens: Tensor) -> Tensor:
    """Return the entropy in nat of how often each value occurs, of each (n,) row of `tokens`.

    There is no step whose size depends on the values. It is log n minus the mean of log c over all tokens, where c is
    how often a token occurs: over a run of equal values in the sorted tensor, c log c is the telescoped sum of
    r log r - (r - 1) log(r - 1) over the ranks r in it.
    """
    n = tokens.shape[-1]
    ordered = tokens.sort().values
    place, gain = _table(n, tokens.device)
    begins = place.expand(ordered.shape).clone()
    begins[..., 1:] *= ordered[..., 1:] != ordered[..., :-1]
    found = math.log(n) - gain[place - begins.cummax(-1).values].sum(-1) / n
    return found * (found > ROUNDING)


@lru_cache(maxsize=8)
def _table(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the numbers from 0 to n - 1 and, for each, what a token with so many equals before it adds."""
    ranks = torch.arange(n + 1, dtype=_wide(device), device=device)
    return torch.arange(n, device=device), torch.special.xlogy(ranks, ranks).diff()


def _repetition(rows: Tensor) -> Tensor:
    """Return the repeated share of each of (batches, rows, length) tokens."""
    longest = min(LONGEST_PERIOD, rows.shape[-1] - 1)
    if longest < 1:
        return torch.full(rows.shape[:1], math.nan, dtype=_wide(rows.device), device=rows.device)
    windows = rows.unfold(-1, longest + 1, 1)
    same = (windows[..., :-1] == windows[..., -1:]).sum(-2, dtype=torch.int32)
    return same.amax(-1).to(_wide(rows.device)).mean(-1) / windows.shape[-2]


def _padding(rows: Tensor) -> Tensor:
    """Return the share of tokens in a run of two and more equal ones at the beginning or the end of their row.

    Of each of (batches, rows, length) tokens.
    """
    length = rows.shape[-1]
    found = torch.zeros(rows.shape[:-1], dtype=torch.int64, device=rows.device)
    for edge in (rows, rows.flip(-1)) if length > 1 else ():
        run = (edge == edge[..., :1]).to(torch.int32).cumprod(-1).sum(-1)
        found += torch.where(run > 1, run, 0)
    return (found.clamp(max=length).to(_wide(rows.device)) / length).mean(-1)


def _of_floats(values: Tensor) -> Tensor:
    every = values.reshape(-1)
    flat = every[:: max(1, math.ceil(every.numel() / MOST_FLOATS))].to(_wide(every.device))
    good = flat.isfinite()
    count = good.sum(dtype=flat.dtype)
    mean = torch.where(good, flat, 0.0).sum() / count
    variance = torch.where(good, flat - mean, 0.0).square().sum() / count
    # One NaN between the sampled numbers counts too; a sum of finite ones in half precision might not be finite.
    whole = every[:MOST_SUMMED].sum(dtype=torch.float32 if every.dtype != torch.float64 else None).isfinite()
    bad = torch.where(whole, 1.0 - count / flat.numel(), (1.0 - count / flat.numel()).clamp(min=1.0 / every.numel()))
    return torch.stack([mean, variance.sqrt(), bad])
