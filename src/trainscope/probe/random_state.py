"""The state of every random number generator a training step may draw from, taken and put back.

Replaying a step bit for bit needs the state before its forward. Taking it is a few copies of a few
kilobytes (no device synchronisation: a CUDA generator keeps seed and offset on the host). Generators that
the script made itself (``torch.Generator``, ``numpy.random.Generator``) are its own business.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_WORDS = 624
"""Of a Mersenne Twister; the position among them comes behind."""
_LOOKED_AT = 17
"""The position and the last words."""


def take() -> dict[str, Any]:
    """Return the state of torch (CPU, CUDA), Python's ``random`` and NumPy's global generator."""
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        state["numpy"] = _of_numpy(numpy)
    return state


_known: list[tuple[Any, Any, list[int], Any]] = []
"""NumPy's generator, its words in memory, those looked at and the whole state as they were when last taken."""


def _of_numpy(numpy: Any) -> Any:
    """Return the state of NumPy's global generator: the one last taken, where nobody drew since.

    The position moves with every draw, and all words are new when it begins again and when it is seeded: so it and a
    few words tell.
    """
    generator = numpy.random.mtrand._rand._bit_generator
    if type(generator).__name__ != "MT19937":
        return numpy.random.get_state()
    if not _known or _known[0][0] is not generator:
        words = (ctypes.c_uint32 * (_WORDS + 1)).from_address(generator.ctypes.state_address)
        _known[:] = [(generator, words, [], None)]
    _, words, before, state = _known[0]
    now = words[-_LOOKED_AT:]
    # A normal number that waits to be drawn is not among the words.
    if now != before or state[3]:
        state = numpy.random.get_state()
        _known[:] = [(generator, words, now, state)]
    return state


def storable(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return `state` as tensors, numbers and strings, which ``torch.load(weights_only=True)`` accepts."""
    version, words, gauss = state["python"]
    stored: dict[str, Any] = {
        "format": 1,
        "torch": state["torch"],
        "python": {"version": version, "words": torch.tensor(words, dtype=torch.int64, device="cpu"), "gauss": gauss},
    }
    if "cuda" in state:
        stored["cuda"] = list(state["cuda"])
    if "numpy" in state:
        name, keys, position, has_gauss, cached = state["numpy"]
        stored["numpy"] = {
            "name": str(name),
            "keys": torch.tensor([int(key) for key in keys], dtype=torch.int64, device="cpu"),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached_gaussian": float(cached),
        }
    return stored


def put_back(stored: Mapping[str, Any]) -> None:
    """Set every generator to a state made by :func:`storable`."""
    torch.set_rng_state(stored["torch"])
    python = stored["python"]
    random.setstate((int(python["version"]), tuple(int(w) for w in python["words"].tolist()), python["gauss"]))
    cuda: list[Tensor] = stored.get("cuda", [])
    if cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(cuda[: torch.cuda.device_count()])
    if "numpy" in stored:
        import numpy

        saved = stored["numpy"]
        keys = numpy.array(saved["keys"].tolist(), dtype=numpy.uint32)
        numpy.random.set_state(  # noqa: NPY002  # the generator whose state it is
            (saved["name"], keys, saved["position"], saved["has_gauss"], saved["cached_gaussian"])
        )
