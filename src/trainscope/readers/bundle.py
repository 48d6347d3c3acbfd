"""A baseline file: one run, written by ``trainscope baseline save`` or ``trainscope ci``.

Recognised by   an Arrow stream with the key ``trainscope.bundle`` in its schema
Keeps           everything: series, facts, notes, the first and last per-parameter statistics
Drops           nothing that the file has
Quirks          none
Reference       :mod:`trainscope.store.bundle`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import Run

if TYPE_CHECKING:
    from trainscope.readers.source import Head, Source

NAME = "bundle"
DESCRIPTION = "a baseline file of trainscope"


def sniff(head: Head) -> bool:
    """Tell whether the source is a baseline file."""
    return head.raw[:4] == b"\xff\xff\xff\xff" and b"trainscope.bundle" in head.raw


def read_runs(source: Source) -> list[Run]:
    """Return the one run of a baseline file.

    Raises
    ------
    ReadError
        If it is damaged or of a later version.
    NoDataError
        If its run has no step.
    """
    from trainscope.store.bundle import from_bytes

    try:
        run = from_bytes(source.read(), source.given)
    except ValueError as error:
        raise ReadError(source.given, str(error)) from None
    if not any(len(s) for s in run.series.values()):
        raise NoDataError(f"{source.given}: a baseline without a step")
    return [run]
