"""Per-layer statistics on their way: buffer, journal segment, layer file."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from trainscope.core.errors import StoreError
from trainscope.store import layout, stream
from trainscope.store.block import LayerBlock
from trainscope.store.chunks import chunks
from trainscope.store.journal import BlockBuffer, SegmentWriter
from trainscope.store.layers import LayerStore


@dataclass(slots=True)
class _Segment:
    path: Path
    last_step: int


class LayerLog:
    """Appends blocks to the journal and folds segments into the layer files as they age.

    On disk at full resolution: at most `window` and two segments of half a window. In memory: the blocks of
    one flush.
    """

    def __init__(self, run: Path, *, window: int, factor: int, compaction: int, flush_steps: int) -> None:
        self._run, self._window = run, window
        self._segment_steps = max(1, min(window, compaction) // 2)
        self._buffer = BlockBuffer(flush_steps)
        self._writer: SegmentWriter | None = None
        self._segments: deque[_Segment] = deque()
        self._number = 0
        self._last_step = -1
        self.store = LayerStore(run, window=window, factor=factor)
        self.statistics: dict[str, None] | None = {}
        """Statistics of any block, in the order in which they came; None where an earlier session kept no count."""

    @property
    def last_step(self) -> int:
        """The last step of any block, -1 if there was none."""
        return self._last_step

    def add(self, step: int, block: LayerBlock) -> None:
        """Buffer one step.

        Raises
        ------
        StoreError
            If the layers changed and the flush that this takes fails.
        """
        if not self._buffer.fits(block):
            self.flush()
        self._buffer.add(step, block)
        self._last_step = step

    def flush(self) -> None:
        """Append what is buffered to the journal; it is gone from the buffer whether or not that works.

        Raises
        ------
        StoreError
            If the segment cannot be written; the next flush starts another one.
        """
        if not len(self._buffer):
            return
        if self._writer is not None and (
            self._writer.steps >= self._segment_steps or not self._writer.takes(self._buffer)
        ):
            self._writer = None
        writer = self._writer if self._writer is not None else self._start()
        if self.statistics is not None:
            self.statistics.update(dict.fromkeys(writer.columns))
        self._writer = None
        try:
            writer.write(self._buffer)
        finally:
            self._buffer.reset()
        self._segments[-1].last_step = self._last_step
        self._writer = writer

    def _start(self) -> SegmentWriter:
        self._number += 1
        path = self._run / layout.JOURNAL / layout.segment_name(self._number, self._buffer.first_step)
        for name in self._buffer.labels:
            self.store.files.file(name)
        self._segments.append(_Segment(path, self._last_step))
        return SegmentWriter(path, self._buffer)

    def fold(self, newest: int, *, everything: bool = False) -> bool:
        """Fold the segments that are older than the window, or all of them; tell whether any was.

        Raises
        ------
        StoreError
            If a layer file cannot be written; nothing is lost then, the next call goes on.
        """
        folded = False
        while self._segments:
            oldest = self._segments[0]
            writing = self._writer is not None and self._writer.path == oldest.path
            if not everything and (writing or oldest.last_step > newest - self._window):
                break
            if writing:
                self._writer = None
            self.store.fold(oldest.path, newest=newest)
            self._segments.popleft()
            folded = True
        return folded

    def adopt(self, known: list[tuple[str, str]]) -> None:
        """Take over an earlier session's segments and layer files."""
        self.store.adopt(known)
        for path in layout.segments(self._run):
            stream.repair(path)
            last = -1
            for chunk in chunks(path) if path.exists() else ():
                for name in chunk.names:
                    self.store.files.file(name)
                self.store.edges.update(chunk.edges())
                last = int(chunk.steps[-1])
            if last < 0:
                stream.remove(path)
                continue
            self._segments.append(_Segment(path, last))
            self._last_step = max(self._last_step, last)
            self._number = max(self._number, _number_of(path))

    def drop_from(self, step: int) -> None:
        """Drop every row at or after `step`, buffered or on disk.

        Raises
        ------
        StoreError
            If a file cannot be written.
        """
        self.flush()
        self._writer = None
        kept: deque[_Segment] = deque()
        for segment in self._segments:
            if segment.last_step >= step:
                segment.last_step = _cut(segment.path, step)
            if segment.last_step >= 0:
                kept.append(segment)
        self._segments = kept
        self.store.drop_from(step)
        self._last_step = min(self._last_step, step - 1)


def _cut(path: Path, step: int) -> int:
    """Keep the steps of a segment before `step`; return the last of them, -1 if none is left."""
    kept = [chunk.only(chunk.steps < step) for chunk in chunks(path) if int(chunk.steps[0]) < step]
    if not kept:
        stream.remove(path)
        return -1
    stream.write_dictionary(path, [chunk.batch for chunk in kept])
    return int(kept[-1].steps[-1])


def _number_of(path: Path) -> int:
    head = path.name.split("-")[0]
    if not head.isdigit():
        raise StoreError(f"{path}: not a journal segment; move it out of the run's folder")
    return int(head)
