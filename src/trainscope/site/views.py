"""The parts of a run's page, as its template reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainscope.replay.config import ReplayConfig
from trainscope.report.charts import Mark
from trainscope.report.document import FindingEntry
from trainscope.report.tiles import Tile
from trainscope.site.bundle import Record
from trainscope.site.charts import Chart, Drawing
from trainscope.site.story import IncidentView
from trainscope.site.weights import WeightRow


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with its number and its close look."""

    number: int
    finding: FindingEntry
    chart: Chart | None


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer in numbers: what the map shows, without the map."""

    name: str
    peak: str
    peak_step: str
    end: str


@dataclass(frozen=True, slots=True)
class MapView:
    """A heat map and its rows in numbers."""

    name: str
    """As records and logs spell it."""
    chart: Chart
    rows: tuple[LayerRow, ...]
    index: int
    """Its place in the record."""


@dataclass(frozen=True, slots=True)
class ReplayView:
    """How to train again without the batches that hurt."""

    plan: ReplayConfig
    config: str
    """``replay_config.json``, to the byte."""
    skipped: str
    """The batches that it leaves out, in ranges."""
    chart: Chart | None
    """The loss with the steps of those batches."""


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything on the page of one run."""

    record: Record
    title: str
    word: str
    lead: str
    """The worst of it, in a sentence or two."""
    counts: tuple[tuple[str, int], ...]
    tiles: tuple[Tile, ...]
    facts: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...]
    """Where the findings are, numbered."""
    findings: tuple[FindingView, ...]
    incidents: tuple[IncidentView, ...]
    main: Chart | None
    strips: tuple[Chart, ...]
    small: tuple[Chart, ...]
    layers: tuple[MapView, ...]
    weights: tuple[WeightRow, ...]
    weight_steps: tuple[int, ...]
    """Those of which the record keeps histograms."""
    shares: tuple[MapView, ...]
    replay: ReplayView | None
    judged: str
    left_out: str

    def charts(self) -> Iterator[Chart]:
        """Yield every chart of the page."""
        maps = (view.chart for view in (*self.layers, *self.shares))
        looks = (view.chart for view in self.findings)
        replay = None if self.replay is None else self.replay.chart
        for chart in (self.main, *self.strips, *self.small, *maps, *looks, replay):
            if chart is not None:
                yield chart

    def drawings(self) -> list[tuple[Chart, Drawing]]:
        """Return every drawing of the page with its chart."""
        return [(chart, drawing) for chart in self.charts() for drawing in chart.drawings]
