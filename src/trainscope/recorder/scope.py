"""TrainScope: the recorder's whole Python interface.

Five promises, each a test of that name
    *same numbers*: weights are bitwise those of a run without it. *No trace left*: hooks and patches are
    gone after detaching, an exception, a stop. *No device sync per step*: on an accelerator, numbers are
    moved once every ``DEFERRED_STEPS`` steps, unless the loss is handed over as a float or
    ``stop_on_spike`` is set. *Never stops training by its own fault*: one warning a kind of failure, then
    on. *A killed run reads back to its last flush*.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import RecorderError
from trainscope.probe import Boundary, Options, Probe
from trainscope.recorder import arguments, plugins, ranks
from trainscope.recorder.live import Live
from trainscope.recorder.outlets import Outlets
from trainscope.recorder.session import Session
from trainscope.recorder.stop import StopTraining


class TrainScope:
    """Records a training and says when it goes wrong.

    Parameters
    ----------
    model : Module
        As the training loop calls it: plain, in DDP, sharded by ``fully_shard``, or compiled.
    optimizer : Optimizer or sequence of Optimizer
    config : TrainScopeConfig, optional

    Raises
    ------
    ConfigError
        If the settings name a detector, plug-in, alert or device that does not exist, or are none.
    RecorderError
        If `model` is no module, or `optimizer` neither an optimizer nor a list of them.

    Examples
    --------
    ::

        with TrainScope(model, optimizer) as scope:
            for step, batch in enumerate(loader):
                optimizer.zero_grad()
                loss = model(batch)
                loss.backward()
                spike = scope.step(loss.item(), batch_index=step)
                optimizer.step()
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        config: TrainScopeConfig | None = None,
    ) -> None:
        self.config = config if config is not None else TrainScopeConfig()
        arguments.check_config(self.config)
        arguments.check_model(model)
        self._model = model
        self._path: Path | None = None
        self._optimizers = arguments.optimizers_in(optimizer, "optimizer")
        arguments.check_device(self.config.device)
        self._boundary = Boundary()
        self._metrics = plugins.load_metrics(self.config.metric_plugins)
        self._detectors = plugins.load_detectors(self.config.detector_plugins)
        self._outlets = Outlets(self.config.integrations, self.config.alerts, self._boundary)
        Live(self.config, (), self._boundary)  # a wrong detector is told now, not when training begins
        self._session: Session | None = None
        self._finish: weakref.finalize[[], TrainScope] | None = None

    @property
    def session(self) -> Session:
        """What goes on between attaching and detaching.

        Raises
        ------
        RecorderError
            If the recorder is not attached.
        """
        if self._session is None:
            raise RecorderError("the recorder is not attached: call scope.attach(), or use it in a with statement")
        return self._session

    @property
    def path(self) -> Path | None:
        """Folder of the newest recording; None before attaching, and where it could not be made."""
        return self._path

    @property
    def faults(self) -> Mapping[str, int]:
        """Faults of the recorder itself so far: kind to how often."""
        return self._boundary.faults

    def attach(self) -> Self:
        """Open the run's folder and put the hooks in place.

        Raises
        ------
        RecorderError
            If it is attached already.
        ConfigError
            If settings contradict each other.
        """
        if self._session is not None:
            raise RecorderError("the recorder is attached already: call scope.detach() before attaching again")
        config = ranks.with_common_name(self.config)
        options = Options(
            trace_every=config.trace_every_n_steps,
            activation_every=config.activation_metrics_every_n_steps,
            activation_filter=None if config.activation_layer_filter is None else tuple(config.activation_layer_filter),
            histogram_every=config.histogram_every_n_steps,
            histogram_bins=config.n_histogram_bins,
            device=config.device,
        )
        live = Live(config, self._detectors, self._boundary)
        probe = Probe(self._model, self._optimizers, options, self._boundary)
        session = Session(
            config, probe, self._model, self._optimizers, self._metrics, live, self._outlets, self._boundary
        )
        self._boundary.call("attach", probe.attach)
        self._session, self._path = session, session.path
        # An exception that drops the loop's frame drops this object: hooks go with it, rows are saved.
        self._finish = weakref.finalize(self, session.close)
        return self

    def step(
        self,
        loss: float | Tensor,
        batch_index: int | None = None,
        *,
        step: int | None = None,
        optimizers: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
        scaler: Any = None,
        grad_norm_after_clip: float | Tensor | None = None,
    ) -> dict[str, Any] | None:
        """Record one optimizer step; call it between ``backward`` and ``optimizer.step``.

        Parameters
        ----------
        loss : float or Tensor
            Of this step, unscaled. A tensor on an accelerator is not waited for: a spike in it is
            reported up to ``DEFERRED_STEPS`` calls later, under its own step.
        batch_index : int, optional
            Which batch this was, for replay.
        step : int, optional
            Number of the step; counted from 0 (or on from a resumed run) if not given.
        optimizers : Optimizer or sequence of Optimizer, optional
            The optimizers of this step, where they are not those the recorder was made with: a new one is
            recorded from here on, in place of those whose parameters it has taken over.
        scaler : GradScaler, optional
            Its scale is taken out of what is recorded.
        grad_norm_after_clip : float or Tensor, optional
            Where clipping happens out of sight; ``torch.nn.utils.clip_grad_norm_`` is seen.

        Returns
        -------
        dict or None
            ``step``, ``loss``, ``spike_score``, ``detector``, ``batch_index`` of a spike (and ``z_score``,
            the old name of the score).

        Raises
        ------
        RecorderError
            If the recorder is not attached, or an argument is of a wrong kind; names it.
        StopTraining
            On a spike with ``stop_on_spike``; on every rank, if any has one. The recorder detaches first.
        """
        session = self.session
        arguments.check_number(loss, "loss")
        if grad_norm_after_clip is not None:
            arguments.check_number(grad_norm_after_clip, "grad_norm_after_clip")
        arguments.check_scaler(scaler)
        number = arguments.whole_number(step, "step", least=0, most=arguments.MOST_STEPS)
        batch = arguments.whole_number(batch_index, "batch_index")
        if optimizers is not None:
            self._boundary.call("optimizers", session.use, arguments.optimizers_in(optimizers, "optimizers"))
        spike = self._boundary.call(
            "step", session.step, loss, batch, step=number, scaler=scaler, clipped=grad_norm_after_clip
        )
        if self.config.stop_on_spike:
            score = ranks.highest(None if spike is None else float(spike["spike_score"]))
            if score is not None:
                at = session.last_step if spike is None else int(spike["step"])
                session.stop()
                self.detach()
                raise StopTraining(at, score)
        return spike

    def detach(self) -> None:
        """Take every hook away and close the run; does nothing if it is not attached."""
        if self._finish is not None:
            self._finish()
        self._session = self._finish = None

    def __enter__(self) -> Self:
        return self if self._session is not None else self.attach()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.detach()
