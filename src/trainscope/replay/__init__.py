"""Trains again without what hurt: plans what to skip and where to begin, skips it, and proves that it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainscope.replay.loader import SkippingDataLoader

__all__ = ["SkippingDataLoader"]


def __getattr__(name: str) -> object:
    """Load torch only for who asks for the loader."""
    if name in __all__:
        from trainscope.replay.loader import SkippingDataLoader

        return SkippingDataLoader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
