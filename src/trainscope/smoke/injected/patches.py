"""Replaces functions of torch by ones that tell the recorder; everything else they do is the original's.

Installed right after torch's own body ran, before a script can say ``from torch.nn.utils import clip_grad_norm_``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

_installed: list[tuple[Any, str, Any, bool]] = []
"""Holder, name, replacement, and whether the holder had the name itself (else it inherited it)."""
_originals: list[Any] = []


def replace(holder: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put ``make(original)`` in place of an attribute of a module or class."""
    original = getattr(holder, name)
    replacement = functools.wraps(original)(make(original))
    _installed.append((holder, name, replacement, name in vars(holder)))
    _originals.append(original)
    setattr(holder, name, replacement)


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Put the originals back for a while: TorchScript compiles what it finds."""
    for (holder, name, _, own), original in zip(_installed, _originals, strict=True):
        if own:
            setattr(holder, name, original)
        else:
            delattr(holder, name)
    try:
        yield
    finally:
        for holder, name, replacement, _ in _installed:
            setattr(holder, name, replacement)


def suspend_for_script() -> None:
    """Make ``torch.jit.script`` see torch as it is."""
    original = torch.jit.script
    depth = [0]

    @functools.wraps(original)
    def script(*args: Any, **kwargs: Any) -> Any:
        depth[0] += 1  # it calls itself for every function it meets
        try:
            with suspended() if depth[0] == 1 else contextlib.nullcontext():
                return original(*args, **kwargs)
        finally:
            depth[0] -= 1

    torch.jit.script = script
