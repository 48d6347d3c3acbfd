"""What a run's files need beside appending: spike windows, folding as steps age, thinning, the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.store import folder, layout, manifest, spikes
from trainscope.store.chores import Chores, Job
from trainscope.store.layer_log import LayerLog
from trainscope.store.tables import StepTables
from trainscope.store.windows import Row, Windows

MOST_RIPE = 4
"""Segments that may wait to be folded; more are folded at once, since the disk must stay bounded."""


class Upkeep:
    """Keeps the files of one run in order, a little at each turn.

    Every method that touches the disk raises `StoreError`; what failed is tried again or, if it was a spike
    window, given up.
    """

    def __init__(self, run: Path, config: TrainScopeConfig, tables: StepTables, layers: LayerLog) -> None:
        self._run, self._tables, self._layers = run, tables, layers
        self._template = config.checkpoint_on_spike
        self.windows = Windows(config.spike_window_before, config.spike_window_after)
        self.manifest = manifest.Manifest()
        self.newest = -1
        """The last step appended."""
        self._chores = Chores(self._idle)

    def work(self, seconds: float) -> None:
        """Go on for about `seconds` with what waits; where too much does, without limit."""
        while self._layers.ripe(self.newest) > MOST_RIPE:
            self._chores.finish()
            self._chores.add(self._folding())
        if seconds > 0:
            self._chores.work(seconds)

    def finish(self) -> None:
        """Do everything that was begun; one failure does not keep the rest from being done."""
        failure: StoreError | None = None
        while True:
            try:
                self._chores.finish()
            except StoreError as error:
                failure = failure or error
            else:
                break
        if failure is not None:
            raise failure

    def end_window(self) -> None:
        """Begin to write the open window, if there is one, with the steps there are."""
        taken = self.windows.take(self.newest)
        if taken is not None:
            self._chores.add(self._writing(*taken))

    def rewind(self, step: int) -> None:
        """Drop the recorded steps from `step` on: training goes through them again."""
        self.finish()
        self._tables.drop_from(step)
        self._layers.drop_from(step)
        spikes.set_aside(self._run, *self.manifest.rewind(step, self.newest))
        self.windows.drop_from(step)
        self.newest = step - 1
        self.write_manifest()

    def adopt(self) -> None:
        """Go on where an earlier session ended, whichever way it ended."""
        folder.sweep(self._run, self._template)
        self.manifest = manifest.load(self._run)
        self.windows.see(self._tables.adopt(self.windows.length))
        self._layers.adopt(self.manifest.layers)
        # A killed session may have written more than its manifest says.
        known = self.manifest.statistics if self.manifest.closed else None
        self._layers.statistics = None if known is None else dict.fromkeys(known)
        self.newest = max(self._tables.last_step, self._layers.last_step)
        self.manifest.closed = False

    def close(self) -> None:
        """Fold what the journal still holds, and say in the manifest that the run ended in good order."""
        self._layers.fold_all(self.newest)
        self.manifest.closed = True
        self.write_manifest()

    def write_manifest(self) -> None:
        """Write the manifest as things stand."""
        self.manifest.last_step = self.newest
        self.manifest.layers = self._layers.store.files.items()
        self.manifest.statistics = None if self._layers.statistics is None else list(self._layers.statistics)
        folder.write_text(self._run / layout.MANIFEST, self.manifest.to_json())

    def _idle(self) -> Job | None:
        """Return what to do when no window waits."""
        if self._layers.ripe(self.newest):
            return self._folding()
        return self._tables.thinning() or self._layers.store.thinning()

    def _folding(self) -> Job:
        yield from self._layers.folding(self.newest)
        self.write_manifest()

    def _writing(self, window: spikes.Window, rows: Sequence[Row]) -> Job:
        yield from spikes.writing(self._run, window, self._tables.batch(rows), self._layers.store)
        gone = self.manifest.add_window(window)
        self.write_manifest()
        for step in gone:
            yield from spikes.removing(self._run, step)
