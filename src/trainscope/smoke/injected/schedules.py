"""Describes a learning-rate scheduler by its own attributes."""

from __future__ import annotations

import collections
from typing import Any

_POSITION = frozenset({"last_epoch", "verbose", "num_bad_epochs", "cooldown_counter", "best", "T_cur", "T_i"})


def describe(scheduler: Any) -> dict[str, Any]:
    """Return class and scalar options; not where it stands."""
    options: dict[str, Any] = {}
    for name, value in vars(scheduler).items():
        if name.startswith("_") or name in _POSITION:
            continue
        if value is None or isinstance(value, (bool, int, float, str)):
            options[name] = value
        elif isinstance(value, collections.Counter):
            options[name] = sorted(value.elements())
    return {"class": type(scheduler).__name__, "options": options}
