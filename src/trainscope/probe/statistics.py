"""The per-parameter statistics of a step, as a small table on the device."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from . import scaling
from .boundary import Boundary
from .gradients import Gradients, Now
from .measurement import Measurement, Stat
from .moments import Moments, Reducer, moments, sums_of_squares
from .names import Watched
from .optimizer_state import States, rms_sums
from .prepared import Kept, Prepared
from .shards import Shards
from .table import Table
from .tensors import dense, wide_dtype
from .updates import Updates

RATIO_SAMPLE = 2_048
"""Numbers of a gradient that RMS_t is taken on."""
FLAT = 1e-2
"""Below this ratio of variance to squared mean, single precision has no digits left for the variance."""

Plain = dict[Stat, tuple[Sequence[int], Prepared]]
"""Row of the table to the places and tensors whose squares go there."""


class Statistics:
    """Measures gradients, weights, weight changes and optimizer state of one set of parameters."""

    def __init__(
        self,
        watched: Watched,
        optimizers: Sequence[torch.optim.Optimizer],
        boundary: Boundary,
        device: str | None,
    ) -> None:
        self.watched, self._optimizers, self._boundary = watched, optimizers, boundary
        self.gradients = Gradients(watched)
        self.shards = Shards(watched.tensors)
        self._states = States(watched, optimizers)
        self._all = list(range(len(watched.tensors)))
        parts = [dense(t) for t in watched.tensors]
        first = parts[0].device if parts else torch.device("cpu")
        self._device = torch.device(device) if device is not None else first
        self._wide = wide_dtype(self._device)
        self._numel = [part.numel() for part in parts]
        self._updates = Updates(watched.tensors, watched.large, self._device, self._wide)
        self._reducer = Reducer()
        self._precise: frozenset[int] = frozenset()
        self._kept = Kept(moving=bool(self.shards))
        self._count_bad = False

    @property
    def deferred(self) -> bool:
        """Whether numbers come from an accelerator, and so only when many steps are moved at once."""
        return self._device.type != "cpu"

    def measure(
        self, found: Measurement, scaler: object, previous: Measurement | None, *, ratio: bool, second: bool
    ) -> None:
        """Fill the table of `found`, and add to `previous` what its optimizer step changed.

        Parameters
        ----------
        ratio, second : bool
            Whether RMS_t and first moments, and second moments, are due.
        """
        table: Table | None = None
        if self._all:
            table = self._boundary.call("statistics", self._local, found, scaler, previous, ratio, second)
        if table is None:
            if not self.shards:
                return
            table = self._empty(math.nan)  # other ranks wait for ours
        table.share(self.shards)
        found.vectors["table"] = table.values.view(-1)
        if previous is not None and "update" in previous.has and not self._updates.may_wait:
            previous.vectors["update"] = table.values[Stat.UPDATE_SQUARES]

    def finish(self) -> None:
        """Work out what was put off: it must be done before measured steps are read."""
        self._updates.finish()

    def settle(self, previous: Measurement) -> None:
        """Add to `previous` what its optimizer step changed, where no further step is measured."""
        if "update" in previous.has:
            previous.vectors["update"] = self._row(self._all, self._updates.squares(keep=False))

    def clip(self, previous: Measurement) -> None:
        """Note the gradients that `previous` measured as they are now, after clipping."""
        places = self.gradients.present()
        previous.clipped = True
        squares = sums_of_squares([self.gradients.prepare(places)], self._wide)[0]
        previous.vectors["clipped"] = self._row(places, squares)

    def learn(self, *, flat: Sequence[int], bad: bool) -> None:
        """Take back from the host which weights need more digits, and whether gradients are not finite."""
        self._precise |= frozenset(place for place in flat if place < self.watched.large)
        self._count_bad = bad

    def _local(
        self, found: Measurement, scaler: object, previous: Measurement | None, ratio: bool, second: bool
    ) -> Table:
        """Measure this rank's part."""
        scale = scaling.scale_of(scaler)
        if isinstance(scale, Tensor):
            found.vectors["scale"] = scale.detach().clone()
        else:
            found.scale = scale
        scaled = [] if scale is None else [o for o in self._optimizers if not scaling.is_unscaled(scaler, o)]
        now = self.gradients.now()
        full = {"grads": now.rest}
        plain: Plain = {}
        if now.clipped:
            plain[Stat.CLIPPED_SQUARES] = (now.clipped, self.gradients.prepare(now.clipped))
        if found.layers:
            full["weights"] = self._kept.prepare("weights", self.watched.tensors, self.watched.large, whole=True)
            if ratio or second:
                plain.update(self._state_squares(found, first=ratio, second=second))
        table = self._empty()
        self._follow(previous, table, keep=found.layers)
        self._reduce(found, now, full, plain, table)
        if scaled and scale is not None:
            found.squares = None
            index = self.watched.index
            owned = [id(p) for o in scaled for group in o.param_groups for p in group["params"]]
            table.unscale([index[key] for key in owned if key in index], scale)
        if found.layers:
            found.has["update"] = self._all
            if ratio:
                self._put_rms(found, now, table, scaled, scale)
        return table

    def _follow(self, previous: Measurement | None, table: Table, *, keep: bool) -> None:
        """Note what the optimizer step of `previous` changed."""
        if not self._updates.begun:
            if keep:
                self._updates.keep()
        elif self._updates.may_wait:
            self._updates.later({} if previous is None else previous.vectors, keep=keep)
        else:
            table.put(Stat.UPDATE_SQUARES, self._all, self._updates.squares(keep=keep))

    def _state_squares(self, found: Measurement, *, first: bool, second: bool) -> Plain:
        """Prepare those of the optimizer's moments that are due."""
        of_first, of_second = self._states.tensors()
        wanted = {Stat.V_SQUARES: ("v", of_second)} if second else {}
        if first:
            wanted[Stat.M_SQUARES] = ("m", of_first)
        for name, (places, _) in wanted.values():
            found.has[name] = places
        return {
            row: (places, self._kept.prepare(name, tensors, bisect.bisect_left(places, self.watched.large)))
            for row, (name, (places, tensors)) in wanted.items()
        }

    def _reduce(self, found: Measurement, now: Now, full: dict[str, Prepared], plain: Plain, table: Table) -> None:
        """Reduce everything in as few calls as there are kinds of numbers, and fill the table."""
        full, plain = {n: one for n, one in full.items() if len(one)}, {r: p for r, p in plain.items() if len(p[1])}
        measured: dict[str, Moments] = {}
        if full or plain:
            moments_found, squares = self._reducer.reduce(list(full.values()), [one for _, one in plain.values()])
            measured = dict(zip(full, moments_found, strict=True))
            for (row, (places, _)), values in zip(plain.items(), squares, strict=True):
                table.put(row, places, values)
        self._put_gradients(found, now, measured.get("grads"), table)
        if "weights" in measured:
            self._put_weights(measured["weights"], table)

    def _put_gradients(self, found: Measurement, now: Now, rest: Moments | None, table: Table) -> None:
        found.has["grad"] = sorted([*now.clipped, *now.places])
        found.has["clipped"] = now.clipped
        found.clipped, found.bad_counted = bool(now.clipped), True
        parts = [(raw.places, raw.moments) for raw in now.raw]
        known: list[float] = []
        for places, part in parts if rest is None else [(now.places, rest), *parts]:
            table.put_moments(Stat.GRAD_SQUARES, places, part)
            squares = None if self.deferred else part.squares.tolist()
            known += squares or ()
            bad = self._bad(places, squares)
            found.bad_counted &= bad is not None
            if bad:
                table.put(Stat.BAD, list(bad), torch.stack(list(bad.values())))
        if not (self.deferred or self.shards):
            found.squares = sum(known)

    def _bad(self, places: Sequence[int], squares: list[float] | None) -> dict[int, Tensor] | None:
        """Count what is not finite, where it is known without waiting that something is.

        None where it is not known.
        """
        if squares is None and not self._count_bad:
            return None
        chosen = list(places)
        if squares is not None:
            if math.isfinite(sum(squares)):
                return {}
            chosen = [p for p, s in zip(places, squares, strict=True) if not math.isfinite(s)]
        grads = self.gradients.tensors(chosen)
        return {p: (~torch.isfinite(dense(g))).sum() for p, g in zip(chosen, grads, strict=True)}

    def _put_weights(self, measured: Moments, table: Table) -> None:
        again = list(self._precise)
        if not self.deferred:
            rows = zip(*measured.table[:2].tolist(), self._numel, strict=True)
            again = [i for i, (square, total, n) in enumerate(rows) if square * n < (1 + FLAT) * total * total]
            again = again[: bisect.bisect_left(again, self.watched.large)]
        if again:
            exact = moments([self.watched.tensors[i] for i in again])
            measured.table[:2, again] = exact.table[:2]
        table.put_moments(Stat.WEIGHT_SQUARES, self._all, measured)

    def _put_rms(
        self,
        found: Measurement,
        now: Now,
        table: Table,
        scaled: Sequence[torch.optim.Optimizer],
        scale: Tensor | float | None,
    ) -> None:
        if scaled and len(scaled) < len(self._optimizers):
            return  # some gradients carry the loss scale and some do not
        ratios = rms_sums(self._states.adam(), now.tensors, scale if scaled else None, RATIO_SAMPLE)
        if ratios is not None:
            found.has["rms"], values, counts = ratios
            table.put(Stat.RMS_SUM, found.has["rms"], values)
            numbers = torch.tensor(counts, dtype=self._wide, device="cpu").to(self._device, non_blocking=True)
            table.put(Stat.RMS_COUNT, found.has["rms"], numbers)

    def _empty(self, value: float = 0.0) -> Table:
        return Table(len(self._all), self._wide, self._device, value)

    def _row(self, places: Sequence[int], values: Tensor) -> Tensor:
        """Return one row of sums by itself."""
        row = torch.zeros((1, len(self._all)), dtype=self._wide, device=self._device)
        at = torch.tensor(places, dtype=torch.long, device="cpu").to(self._device, non_blocking=True)
        row[0, at] = values.to(row)
        self.shards.add(row)
        return row[0]
