"""Which steps around a spike are to be kept, and when they are all there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from trainscope.store.spikes import Window
from trainscope.store.tables import Scalar

Row = Mapping[str, Scalar]


class Windows:
    """The newest rows of scalars, and the window that is open.

    Parameters
    ----------
    before, after : int
        Steps of a window on both sides of its spike: recorded ones, whatever they are numbered by (a loop may
        count samples).
    """

    def __init__(self, before: int, after: int) -> None:
        self._before, self._after = before, after
        self._recent: deque[Row] = deque(maxlen=before + after + 1)
        self._open: Window | None = None
        self._missing = 0
        """Steps that the open window waits for."""

    @property
    def length(self) -> int:
        """Steps of a whole window."""
        return self._before + self._after + 1

    def see(self, rows: Iterable[Row]) -> None:
        """Take the scalars of steps as they come."""
        for row in rows:
            self._recent.append(row)
            self._missing -= 1

    def mark(self, step: int, score: float) -> None:
        """Open a window around `step`, the last that came; a spike inside the open one is noted in that instead."""
        if self._open is None:
            begin = self._recent[max(0, len(self._recent) - 1 - self._before)] if self._recent else {"step": step}
            self._open = Window(step, score, min(step - self._before, _step(begin)), step + self._after)
            self._missing = self._after
        else:
            self._open.also.append(step)

    def is_complete(self) -> bool:
        """Tell whether a window is open and its last step has come."""
        return self._open is not None and self._missing <= 0

    def take(self, newest: int) -> tuple[Window, list[Row]] | None:
        """Close the open window with the steps there are; return it and its rows, None if none is open."""
        window, self._open = self._open, None
        if window is None:
            return None
        window.last = newest
        return window, [row for row in self._recent if window.first <= _step(row) <= window.last]

    def drop_from(self, step: int) -> None:
        """Forget the rows at or after `step`."""
        kept = [row for row in self._recent if _step(row) < step]
        self._recent.clear()
        self._recent.extend(kept)


def _step(row: Row) -> int:
    return int(row["step"] or 0)
