"""Puts what the hooks see together into rounds of optimizer steps, writes them, and ends the run."""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from ...probe import process
from . import ending, hashing, memory, pace
from .attending import Attending
from .batches import Batches
from .buffers import Buffers
from .counters import Counters
from .declared import declared
from .forwards import Forwards
from .given import Loaders
from .graphs import LiveGraphs, Token
from .guard import Guard
from .labels import LabelHistogram
from .models import Models
from .norms import gradient_norms
from .omission import Omission
from .optimizers import Memory, Tracked, options_of, rates_of
from .origins import Output, origin
from .schedules import Schedulers
from .setting import Setting
from .sink import Sink, rank
from .window import Window, evaluation
from .workers import Workers


class Recorder:
    """One process's recording.

    Parameters
    ----------
    steps : int
        Optimizer steps after which the script is ended; 0 is never.
    folder : str
        Where the file goes.
    batches : Batches, optional
        Which batches of a loader a replay leaves out.
    omission : Omission, optional
        Which updates.
    """

    def __init__(self, steps: int, folder: str, batches: Batches | None, omission: Omission | None = None) -> None:
        self.steps = steps
        self.sink, self.batches = Sink(folder), batches if batches is not None else Batches()
        self.omission = omission if omission is not None else Omission()
        self.guard = Guard(lambda fault: self.sink.write("fault", fault=fault))
        self.models, self.forwards, self.graphs, self.buffers = Models(), Forwards(), LiveGraphs(), Buffers()
        self.setting, self._labels = Setting(self.models), LabelHistogram()
        self.attending, self.counters = Attending(self.models, self.guard), Counters()
        self.loaders, self.workers, self.output = Loaders(), Workers(), Output()
        self.tracked: weakref.WeakKeyDictionary[Optimizer, Tracked] = weakref.WeakKeyDictionary()
        self.active = [True]
        """Whether this process may record; a list, so that hooks can share it."""
        self.window = Window()
        self.inside_backward = 0
        self.token: Token | None = None
        self.schedulers = Schedulers()
        self.created = 0
        self.backwards = 0
        self.clipped: dict[int, tuple[int, float]] = {}
        """``id`` of a parameter to (backward count, gradient norm) from just before it was clipped."""
        self._ended, self._nonfinite, self._memory = False, False, Memory()
        self._pid = os.getpid()
        self.done = self._raised = 0
        self._open: list[dict[str, Any]] = []
        self._stepped: list[weakref.ref[Optimizer]] = []
        self._expected: list[weakref.ref[Optimizer]] = []
        self._started = False
        self._clock = (0.0, 0.0)
        self._declared = self.guard.hook("declared schedule", declared)
        self._origin = self.guard.hook("origin of NaN", self._write_origin)

    def wakes(self) -> bool:
        """Tell whether this process records; a fork of one that has taken steps does not."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self.active[0] = self.active[0] and not self._started
        return self.active[0]

    def is_watched(self, module: Module) -> bool:
        """Tell whether `module` is an outermost one that is being recorded, or a copy of one that is evaluated."""
        return self.active[0] and self.models.is_watched(module, inside=self.forwards.is_inside)

    def skipped_step(self, optimizer: Optimizer) -> None:
        """Note a step that a GradScaler refused."""
        tracked = self.before_step(optimizer)
        self.gradients(optimizer, tracked)
        self.after_step(optimizer, tracked, skipped=True)

    def track(self, optimizer: Optimizer) -> Tracked:
        """Return what is known of an optimizer, from its construction on."""
        found = self.tracked.get(optimizer)
        if found is None:
            found = self.tracked[optimizer] = Tracked(self.created, self._memory)
            self.created += 1
            self._expected += [weakref.ref(optimizer)] if not self.done else []
        return found

    def before_step(self, optimizer: Optimizer) -> Tracked:
        """Note the weights; the gradients may not exist yet (closures)."""
        tracked = self.track(optimizer)
        if any(ref() is optimizer for ref in self._stepped):
            self.close_round()
        self.end_if_done()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if not self._started:
            self._started = True
            self.sink.open()
            self.sink.write("begin", rank=rank(), **self.setting.begin(parameters, list(self.tracked)))
            self.sink.write("declared", facts=self._declared() or [], schedulers=self.schedulers.describe())
        tracked.parameters = parameters
        tracked.counters = self.counters.read(self.window.shares(), self.forwards.evaluated_shares())
        tracked.updates.before(parameters)
        self.omission.before_step(optimizer, self.window.forwards)
        return tracked

    def gradients(self, optimizer: Optimizer, tracked: Tracked) -> None:
        """Measure the gradients as the optimizer gets them."""
        scale = getattr(optimizer, "grad_scale", None)
        factor = float(scale) if scale is not None else 1.0
        tracked.applied = gradient_norms(tracked.parameters, factor)
        tracked.raw = []
        for parameter, applied in zip(tracked.parameters, tracked.applied, strict=True):
            at, norm = self.clipped.get(id(parameter), (-1, 0.0))
            tracked.raw.append(norm if at == self.backwards and applied >= 0 else applied)
        tracked.rates = rates_of(optimizer)

    def after_step(self, optimizer: Optimizer, tracked: Tracked, *, skipped: bool = False) -> None:
        """Take the numbers of one optimizer's step; close the round when every optimizer has stepped."""
        self.setting.forget_temporary()
        updates = tracked.updates.after(tracked.parameters)
        window, self.window = self.window, Window()
        left_out = self.omission.after_step(optimizer, window.forwards)
        described = self._labels.add(window.forwards) if left_out is None else None
        if described is not None:
            self.sink.write("labels", **described)
        options = options_of(optimizer)
        names = [
            self.models.name_of(p) or f"optimizer{tracked.number}.param{i}" for i, p in enumerate(tracked.parameters)
        ]
        if tracked.has_changed(names, options):
            self.sink.write(
                "optimizer", number=tracked.number, names=names, groups=options, **tracked.describe(optimizer)
            )
        if left_out is None:
            self._open.append({**tracked.to_row(optimizer, updates, skipped=skipped), **window.to_row()})
        for position, batch in left_out or ():
            self.sink.write("dropped", position=position, hash=batch)
        tracked.stepped()
        self._stepped.append(weakref.ref(optimizer))
        if {id(o) for ref in self._expected if (o := ref()) is not None} <= {id(ref()) for ref in self._stepped}:
            self.close_round()

    def close_round(self) -> None:
        """Write the open round, if any optimizer has stepped in it."""
        if not self._stepped:
            return
        parts, self._open = self._open, []
        self._expected, self._stepped = self._stepped, []
        cpu, wall = time.process_time() - self.guard.cpu, time.perf_counter() - self.guard.wall
        timed = [wall - self._clock[1], cpu - self._clock[0]] if self.done else None
        self._clock = (cpu, wall)
        attention = self.attending.collect()
        if not parts:  # all of it left out
            return
        self.sink.write(
            "step",
            step=self.done,
            parts=parts,
            time=timed,
            wall=time.time(),
            memory=process.cpu_memory_mb(),
            peak=memory.peak_mb(),
            cuda=[process.cuda_memory_mb(), memory.cuda_peak_mb()],
            graphs=len(self.graphs),
            rng=hashing.of_random_state(),
            created=self.created,
            label_entropy=self._labels.entropy(),
            buffers=self.buffers.update(self.models.alive()),
            evaluated=evaluation(self.forwards.evaluated()),
            left_out=self.setting.left_out_with_gradient(),
            attention=attention,
            workers=self.workers.cpu_seconds(),
            pace=pace.seconds(),
        )
        self.done += 1

    def end_if_done(self) -> None:
        """End the script if the wanted steps have been taken; called where the next step would begin."""
        if not self.steps or self.done < self.steps or not self.active[0]:
            return
        self._raised += 1
        self.finish("steps")
        ending.leave(self._raised)

    def finish(self, why: str) -> None:
        """Write the last line; once."""
        if self._started and self.active[0] and os.getpid() == self._pid:
            self.close_round()
            if not self._ended:
                self._ended = True
                evaluated = evaluation(self.forwards.evaluated())
                facts = {**self.loaders.end(), **self.setting.end(self.attending.dropped), **self.forwards.end()}
                self.sink.write("end", why=why, evaluated=evaluated, **facts)

    def before_backward(self, root: Tensor | None, raw: Tensor | None, divisor: float | None) -> None:
        """Note a backward that starts from `root`; `raw` is the loss before the GradScaler."""
        self.end_if_done()
        for optimizer, tracked in list(self.tracked.items()):
            tracked.look_for_stale(optimizer)
        self.setting.draws.end()
        window = self.window
        window.backward_calls += 1
        trained = self.forwards.trained()
        self.omission.number(trained)
        window.forwards += trained
        self.backwards += 1
        if root is None or root.numel() != 1:
            return
        value = float((root if raw is None else raw).detach())
        window.roots.append((value, divisor))
        if not math.isfinite(value) and not self._nonfinite and not self.omission.is_due(window.forwards):
            self._nonfinite = True
            self._origin(root)
        if root.grad_fn is not None:
            self.graphs.mark(root, self.token, whole=True)
            self.token = None

    def _write_origin(self, root: Tensor) -> None:
        found = origin(root, self.output, self.token, self.window.forwards, self.models)
        self.sink.write("nonfinite", **found)

    def before_clip(self, parameters: Sequence[Tensor]) -> None:
        """Measure gradients that are about to be clipped."""
        scale = self.window.scale if self.window.scale and not self.window.unscaled else 1.0
        for parameter, norm in zip(parameters, gradient_norms(parameters, scale), strict=True):
            self.clipped[id(parameter)] = (self.backwards, norm)
