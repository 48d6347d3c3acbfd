"""Keeps faults of the recorder out of the script, and its time out of the measurements."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils import _python_dispatch as python_dispatch

P = ParamSpec("P")
T = TypeVar("T")


class Guard:
    """Runs hooks so that the first exception in one switches that one off, and is written down.

    ``SystemExit``, which ends the run after the wanted number of steps, passes.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._off: set[str] = set()
        self.cpu = 0.0
        """CPU seconds spent in hooks."""
        self.wall = 0.0
        """Seconds spent in hooks."""

    def hook(self, name: str, function: Callable[P, T], *, timed: bool = True) -> Callable[P, T | None]:
        """Return `function` wrapped; it gives None when it is switched off."""

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
            if name in self._off:
                return None
            cpu, wall = (time.process_time(), time.perf_counter()) if timed else (0.0, 0.0)
            try:
                with unseen():
                    return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # the boundary itself
                self._off.add(name)
                self._report(f"{name}: {type(error).__name__}: {error}"[:300])
                return None
            finally:
                if timed:
                    self.cpu += time.process_time() - cpu
                    self.wall += time.perf_counter() - wall

        return guarded


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Keep what hooks compute from the script's own modes, which may count, change or fake every operation."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(python_dispatch._disable_current_modes())
        yield


def is_traced() -> bool:
    """Tell whether torch.compile, torch.fx or TorchScript traces: what is done now becomes part of the graph."""
    if torch.compiler.is_compiling():
        return True
    return torch._C._get_tracing_state() is not None or bool(
        getattr(sys.modules.get("torch.fx._symbolic_trace"), "_is_fx_tracing_flag", False)
    )


def opaque(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one that ``torch.compile`` calls and does not trace, without importing its machinery."""

    @functools.wraps(function)
    def untraced(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    untraced._torchdynamo_disable = True  # type: ignore[attr-defined]
    return untraced
