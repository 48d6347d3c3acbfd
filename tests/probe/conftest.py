"""Small models and a probe around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trainscope.probe import Boundary, Probe, Reading

Attach = Callable[..., "Probe"]


@pytest.fixture
def boundary() -> Iterator[Boundary]:
    """Faults of the probe itself fail the test that meets them."""
    from trainscope.probe import Boundary

    made = Boundary()
    yield made
    assert made.faults == {}


@pytest.fixture
def attach(boundary: Boundary) -> Iterator[Attach]:
    """Attach a probe; it is detached after the test."""
    from trainscope.probe import Options, Probe

    probes: list[Probe] = []

    def make(model, optimizers=(), **options) -> Probe:
        options = {"activation_every": 1, "histogram_every": 1, **options}
        probe = Probe(model, list(optimizers), Options(**options), boundary)
        probe.attach()
        probes.append(probe)
        return probe

    yield make
    for probe in probes:
        probe.detach()


def row(reading: Reading, layer: str) -> dict[str, float | None]:
    """Return one layer's statistics, None where it has none."""
    at = reading.names.index(layer)
    known = {name: name not in reading.valid or bool(reading.valid[name][at]) for name in reading.columns}
    return {name: float(column[at]) if known[name] else None for name, column in reading.columns.items()}


@pytest.fixture
def stats() -> Callable[[Reading, str], dict[str, float | None]]:
    """Look at one layer of a reading."""
    return row
