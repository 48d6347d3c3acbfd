"""What a record is made of: curves, maps, histograms and dates, each checked where it is read."""

from __future__ import annotations

import binascii
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trainscope.report.document import Number, Part

Style = Literal["loss", "eval", "grad", "rate", "time", "score", "other"]
"""Style class of what a curve measures."""
Step = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Real = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number: JSON of others may hold 1e999, and a script of ours no infinity."""
EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""The years 2000 and 2100: what lies outside is a stopwatch, not a date."""
Date = Annotated[int, Field(ge=EARLIEST, le=LATEST)]


class Curve(Part):
    """One series, every point of it or an envelope.

    Values have six significant digits. Where `low` is empty, `middle` has every point; otherwise each row stands
    for an equal share of the steps, with its least, lower median and greatest finite value.
    """

    name: str
    style: Style
    unit: str = ""
    count: int
    """Points of the series, before any reduction."""
    step: list[Step]
    middle: list[Real | None]
    """None where the value is NaN or infinite: the line breaks there."""
    low: list[Real | None] = Field(default_factory=list)
    high: list[Real | None] = Field(default_factory=list)
    broken: list[Step] = Field(default_factory=list)
    """Steps (or middles of shares) that hold NaN or infinity."""
    broken_count: int = 0
    first: tuple[Step, Number] | None = None
    last: tuple[Step, Number] | None = None
    """First and last finite point, step and value; None where there is none."""
    least: tuple[Step, Number] | None = None
    most: tuple[Step, Number] | None = None
    """The exact extremes and the steps they stand at."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        lengths = {len(self.step), len(self.middle), *(len(c) for c in (self.low, self.high) if c)}
        if len(lengths) > 1 or bool(self.low) != bool(self.high):
            raise ValueError("its columns have different lengths")
        if any(b < a for a, b in zip(self.step, self.step[1:], strict=False)):
            raise ValueError("its steps are out of order")
        return self


class Rows(Part):
    """Values of many rows (layers, experts) over steps, as one byte a cell: what a heat map shows.

    `cells` is base64 of rows x columns bytes: 0 nothing recorded, 1 to 254 from `low` to `high` (evenly, in
    logarithms where `log`), 255 NaN or infinity. A cell holds the greatest value of its share of the steps, or
    the last one before it where the share has none.
    """

    title: str
    rows: list[str]
    first: Step
    last: Step
    """The steps that the columns cover."""
    columns: Annotated[int, Field(ge=1, le=10_000)]
    low: Real
    high: Real
    log: bool
    cells: str
    peak: list[tuple[Step, Number] | None]
    """Greatest finite value of each row and its step, exact."""
    end: list[Number | None]
    """Last value of each row."""
    left_out: int = 0
    """Rows that had no room."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(binascii.a2b_base64(self.cells)) != len(self.rows) * self.columns or not self.rows:
            raise ValueError("its cells are not rows times columns")
        if not len(self.rows) == len(self.peak) == len(self.end):
            raise ValueError("its columns have different lengths")
        if self.first > self.last or not self.low <= self.high or (self.log and self.low <= 0):
            raise ValueError("its limits are no limits")
        return self


class Weights(Part):
    """Weight histograms of one layer at some steps, on edges that never moved."""

    layer: str
    step: list[Step]
    edges: list[Real]
    share: list[list[Real]]
    """Share of the weights in each bin, one list a step, three significant digits."""
    divergence: list[list[Real]]
    """``divergence[i][j]``: Kullback-Leibler divergence of step j's histogram from step i's, in nats."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        count, bins = len(self.step), len(self.edges) - 1
        shares = {len(row) for row in self.share}
        apart = {len(row) for row in self.divergence}
        if count < 2 or bins < 1 or len(self.share) != count or len(self.divergence) != count:
            raise ValueError("it has no histogram for each step")
        if shares != {bins} or apart != {count}:
            raise ValueError("its columns have different lengths")
        return self


class About(Part):
    """Where a run comes from, as far as its log says."""

    started: Date | None = None
    """Unix seconds of its first point."""
    ended: Date | None = None
    branch: str | None = None
    commit: str | None = None
