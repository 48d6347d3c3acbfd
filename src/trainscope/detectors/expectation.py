"""expectation: a metric does not meet what the settings file expects of it.

What it finds
    Each line of ``expect`` in the settings that is not met, or that names a metric the run does not have.
Algorithm
    ``METRIC at step N OP VALUE`` reads the last finite point at or before step N; ``METRIC last|min|max|mean
    OP VALUE`` reads all finite points. OP is one of ``<  <=  >  >=``. A run that ended before step N does not
    meet what is expected there.
Parameters
    expect: the expectations; normally the settings file's ``expect`` list.
False positives
    None of its own: it says what you asked.
Misses
    None of its own.
Reference
    Megatron-LM's and torchtitan's CI compare a run with golden values in the same spirit.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import canonical
from trainscope.core.run import Run, Series
from trainscope.detectors.base import Detector, Skipped, number

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LINE = re.compile(
    r"^(?P<metric>\S+)\s+(?:at\s+step\s+(?P<step>\d{1,18})|(?P<which>last|min|max|mean))\s*"
    r"(?P<op><=|>=|<|>)\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One parsed line."""

    text: str
    metric: str
    step: int | None
    which: str
    op: str
    value: float


@dataclass(frozen=True, slots=True)
class Params:
    """What is expected."""

    expect: tuple[str, ...] = ()
    """Lines such as ``train/loss at step 200 <= 6.5``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "expect", tuple(self.expect))
        for line in self.expect:
            if not isinstance(line, str):
                raise ConfigError(f"expect: expected a line of text, got {line!r}")
            parse(line)


def parse(line: str) -> Expectation:
    """Parse one expectation.

    Raises
    ------
    ConfigError
        If the line does not follow the grammar; quotes it and shows one that does.
    """
    match = _LINE.match(line.strip())
    if match is None:
        raise ConfigError(
            f"expect: cannot read {line!r}; write 'METRIC at step N <= VALUE' or 'METRIC last|min|max|mean <= VALUE', "
            "such as 'train/loss at step 200 <= 6.5'"
        )
    step = int(match["step"]) if match["step"] else None
    return Expectation(line.strip(), match["metric"], step, match["which"] or "", match["op"], float(match["value"]))


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each expectation that is not met."""
    if not params.expect:
        return Skipped("no expectation is set")
    return [f for f in (_check(run, parse(line)) for line in params.expect) if f is not None]


def _check(run: Run, wanted: Expectation) -> Finding | None:
    series = run.get(wanted.metric) or run.get(canonical(wanted.metric) or "")
    if series is None:
        near = did_you_mean(wanted.metric, run.series)
        return _finding(wanted, None, f"Expected {wanted.text}, but the run has no {wanted.metric}{near}")
    last = run.last_step
    if wanted.step is not None and last is not None and wanted.step > last:
        return _finding(wanted, None, f"Expected {wanted.text}, but the run ended at {run.x_axis} {last}.")
    found = _value(series.finite(), wanted)
    if found is None:
        when = f" at or before step {wanted.step}" if wanted.step is not None else ""
        return _finding(wanted, None, f"Expected {wanted.text}, but {series.name} has no finite value{when}.")
    value, step = found
    if _OPERATORS[wanted.op](value, wanted.value):
        return None
    return _finding(wanted, step, f"Expected {wanted.text}, but it is {number(value)}.", value)


def _value(series: Series, wanted: Expectation) -> tuple[float, int] | None:
    if not len(series):
        return None
    if wanted.step is not None:
        at = int(np.searchsorted(series.step, wanted.step, side="right")) - 1
        return (float(series.value[at]), int(series.step[at])) if at >= 0 else None
    if wanted.which == "mean":
        return float(series.value.mean()), int(series.step[-1])
    at = {"last": len(series) - 1, "min": int(np.argmin(series.value)), "max": int(np.argmax(series.value))}[
        wanted.which
    ]
    return float(series.value[at]), int(series.step[at])


def _finding(wanted: Expectation, step: int | None, message: str, value: float = float("nan")) -> Finding:
    return Finding(
        detector="expectation",
        severity=Severity.ERROR,
        title="Expectation not met",
        message=message,
        metric=wanted.metric,
        start_step=step,
        end_step=step,
        peak_step=step,
        evidence={"expected": wanted.value, "value": value},
    )


DETECTOR = Detector("expectation", "Expectation not met", ("any metric",), Params(), detect)
