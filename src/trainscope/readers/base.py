"""What a reader is."""

from __future__ import annotations

from typing import Protocol

from trainscope.core.run import Run
from trainscope.readers.source import Head, Source
from trainscope.readers.table import Table


class Reader(Protocol):
    """A module that turns one format into runs."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The word for ``--format`` and ``Run.format``."""
        ...

    @property
    def DESCRIPTION(self) -> str:  # noqa: N802
        """One line for lists of formats."""
        ...

    def sniff(self, head: Head) -> bool:
        """Tell whether the source is of this format: content first, name second. Never raises."""
        ...

    def read_runs(self, source: Source) -> list[Run]:
        """Return the runs in the source, in its order.

        Raises
        ------
        ReadError
            If it is not of this format, or too damaged to read.
        NoDataError
            If there is nothing in it to judge.
        """
        ...


class LineReader(Reader, Protocol):
    """A reader of a format that grows line by line, so that its rows can be parsed as they come."""

    def runs_from(self, table: Table, source: Source) -> list[Run]:
        """Return the runs in rows already parsed; raises as `read_runs` does."""
        ...
