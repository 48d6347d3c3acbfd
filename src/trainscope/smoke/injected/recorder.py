"""Puts what the hooks see together into rounds of optimizer steps, writes them, and ends the run."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ...probe import process
from . import hashing, memory
from .batches import Batches
from .buffers import Buffers
from .forwards import Forwards
from .graphs import LiveGraphs, Token, first_nonfinite
from .guard import Guard
from .labels import LabelHistogram
from .models import Models
from .norms import gradient_norms, total
from .optimizers import Tracked, options_of
from .setting import Setting
from .sink import Sink, pack, rank
from .window import Window, evaluation

SWALLOWED = 3
"""Times a bare ``except:`` may catch the end of the run before the process is left for good."""


class SmokeDone(SystemExit):
    """The wanted number of steps is done: ends the script with code 0."""


class Recorder:
    """One process's recording.

    Parameters
    ----------
    steps : int
        Optimizer steps after which the script is ended; 0 is never.
    folder : str
        Where the file goes.
    batches : Batches, optional
        Which batches a replay leaves out.
    """

    def __init__(self, steps: int, folder: str, batches: Batches | None = None) -> None:
        self.steps = steps
        self.sink, self.batches = Sink(folder), batches if batches is not None else Batches()
        self.guard = Guard(lambda fault: self.sink.write("fault", fault=fault))
        self.models, self.forwards, self.graphs, self.buffers = Models(), Forwards(), LiveGraphs(), Buffers()
        self.setting, self._labels = Setting(self.models), LabelHistogram()
        self.tracked: weakref.WeakKeyDictionary[Optimizer, Tracked] = weakref.WeakKeyDictionary()
        self.active = [True]
        """Whether this process may record; a list, so that hooks can share it."""
        self.window = Window()
        self.inside_backward = 0
        self.token: Token | None = None
        self.schedulers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.created = 0
        self.backwards = 0
        self.clipped: dict[int, tuple[int, float]] = {}
        """``id`` of a parameter to (backward count, gradient norm) from just before it was clipped."""
        self._ended = self._nonfinite = False
        self._pid = os.getpid()
        self._done = self._raised = 0
        self._open: list[dict[str, Any]] = []
        self._stepped: list[weakref.ref[Optimizer]] = []
        self._expected: list[weakref.ref[Optimizer]] = []
        self._started = False
        self._clock = (0.0, 0.0)

    def wakes(self) -> bool:
        """Tell whether this process records; a fork of one that has taken steps does not."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self.active[0] = self.active[0] and not self._started
        return self.active[0]

    def is_root(self, module: object) -> bool:
        """Tell whether `module` is an outermost one that is being recorded."""
        return self.active[0] and any(ref() is module for ref in self.models.roots)

    def skipped_step(self, optimizer: Optimizer) -> None:
        """Note a step that a GradScaler refused."""
        tracked = self.before_step(optimizer)
        self.gradients(optimizer, tracked)
        self.after_step(optimizer, tracked, skipped=True)

    def track(self, optimizer: Optimizer) -> Tracked:
        """Return what is known of an optimizer, from its construction on."""
        found = self.tracked.get(optimizer)
        if found is None:
            found = self.tracked[optimizer] = Tracked(self.created)
            self.created += 1
            self._expected += [weakref.ref(optimizer)] if not self._done else []
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
        tracked.parameters = parameters
        tracked.updates.before(parameters)
        return tracked

    def gradients(self, optimizer: Optimizer, tracked: Tracked) -> None:
        """Measure the gradients as the optimizer gets them."""
        scale = getattr(optimizer, "grad_scale", None)
        factor = float(scale) if scale is not None else 1.0
        tracked.applied = gradient_norms(tracked.parameters, factor)
        raw = []
        for parameter, applied in zip(tracked.parameters, tracked.applied, strict=True):
            at, norm = self.clipped.get(id(parameter), (-1, 0.0))
            raw.append(norm if at == self.backwards and applied >= 0 else applied)
        tracked.raw = raw
        tracked.rates = [float(group.get("lr", math.nan)) for group in optimizer.param_groups]

    def after_step(self, optimizer: Optimizer, tracked: Tracked, *, skipped: bool = False) -> None:
        """Take the numbers of one optimizer's step; close the round when every optimizer has stepped."""
        self.setting.forget_temporary()
        updates = tracked.updates.after(tracked.parameters)
        window, self.window = self.window, Window()
        described = self._labels.add(window.forwards)
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
        part = {
            "optimizer": tracked.number,
            "raw": pack(tracked.raw),
            "applied": pack(tracked.applied),
            "weights": pack(tracked.updates.weights),
            "updates": pack(updates),
            "rates": tracked.rates,
            "decay": max((float(g.get("weight_decay", 0.0) or 0.0) for g in optimizer.param_groups), default=0.0),
            "stale": tracked.stale,
            "skipped": skipped or bool(getattr(optimizer, "found_inf", None)),
            "shares": window.shares(),
            **tracked.state_of(optimizer),
            **window.to_row(),
        }
        tracked.stepped()
        self._open.append(part)
        self._stepped.append(weakref.ref(optimizer))
        waiting = {id(o) for ref in self._expected if (o := ref()) is not None}
        if waiting <= {id(ref()) for ref in self._stepped}:
            self.close_round()

    def close_round(self) -> None:
        """Write the open round, if any optimizer has stepped in it."""
        if not self._open:
            return
        parts, self._open = self._open, []
        self._expected, self._stepped = self._stepped, []
        cpu, wall = time.process_time() - self.guard.cpu, time.perf_counter() - self.guard.wall
        timed = [wall - self._clock[1], cpu - self._clock[0]] if self._done else None
        self._clock = (cpu, wall)
        self.sink.write(
            "step",
            step=self._done,
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
        )
        self._done += 1

    def end_if_done(self) -> None:
        """Raise `SmokeDone` if the wanted steps have been taken; called where the next step would begin."""
        if not self.steps or self._done < self.steps or not self.active[0]:
            return
        self._raised += 1
        self.finish("steps")
        swallowed = self._raised > SWALLOWED
        if swallowed or threading.current_thread() is not threading.main_thread():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        raise SmokeDone(0)

    def finish(self, why: str) -> None:
        """Write the last line; once."""
        if self._started and self.active[0] and os.getpid() == self._pid:
            self.close_round()
            if not self._ended:
                self._ended = True
                self.sink.write("end", why=why, evaluated=evaluation(self.forwards.evaluated()), **self.setting.end())

    def before_backward(self, root: Tensor | None, raw: Tensor | None, divisor: float | None) -> None:
        """Note a backward that starts from `root`; `raw` is the loss before the GradScaler."""
        self.end_if_done()
        for optimizer, tracked in list(self.tracked.items()):
            tracked.look_for_stale(optimizer)
        window = self.window
        window.backward_calls += 1
        window.forwards += self.forwards.trained()
        self.backwards += 1
        if root is None or root.numel() != 1:
            return
        value = float((root if raw is None else raw).detach())
        window.roots.append((value, divisor))
        if root.grad_fn is not None:
            self.graphs.mark(root, self.token, whole=True)
            self.token = None
        if not math.isfinite(value) and not self._nonfinite:
            self._nonfinite = True
            self.sink.write("nonfinite", operation=first_nonfinite(root))

    def before_clip(self, parameters: Sequence[Tensor]) -> None:
        """Measure gradients that are about to be clipped."""
        scale = self.window.scale if self.window.scale and not self.window.unscaled else 1.0
        for parameter, norm in zip(parameters, gradient_norms(parameters, scale), strict=True):
            self.clipped[id(parameter)] = (self.backwards, norm)

    def before_zero_grad(self, parameters: Callable[[], Sequence[Tensor]]) -> None:
        """Count a call of zero_grad, and whether it loses gradients that no step has used."""
        window = self.window
        window.zero_grads += 1
        if window.backward_calls and not any(t.in_closure for t in self.tracked.values()):
            window.thrown += total(gradient_norms(parameters())) > 0
