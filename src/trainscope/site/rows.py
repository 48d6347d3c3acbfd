"""Many rows over steps in one byte a cell: layers by statistic, experts by their share."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from trainscope.core.run import FloatArray, IntArray, LayerTable, Run, Series
from trainscope.report.axis import LOG_RATIO
from trainscope.report.document import Number
from trainscope.site.bundle import Rows
from trainscope.site.curves import exact, short

COLUMNS = 160
MAX_ROWS = 64
"""Rows of one map; a model with more layers shows those with findings and an even choice of the rest."""
MAX_MAPS = 4
MAX_BLOCKS = 6
NOTHING, LEAST, GREATEST, NON_FINITE = 0, 1, 254, 255
STATISTICS = (
    "grad_l2_norm",
    "act_kurtosis",
    "update_ratio",
    "attn_logit_max",
    "rms_t",
    "act_max_abs",
    "weight_l2_norm",
    "attn_entropy",
    "act_dead_fraction",
    "grad_nan_inf_ratio",
)
"""Statistics worth a map, most telling first."""
EVEN = 3.0
"""Shares are shown as log2(share / even share), from minus to plus this."""


def layer_maps(run: Run, told: Collection[tuple[str, str]]) -> tuple[list[Rows], int]:
    """Return the maps of a run's layers, and how many statistics had no room.

    Parameters
    ----------
    run : Run
    told : collection of (statistic, layer)
        What findings are about: these come first and are never left out.
    """
    table = run.layers
    if table is None or run.first_step is None or run.last_step is None:
        return [], 0
    known = table.metrics()
    wanted = [m for m in dict.fromkeys((*(metric for metric, _ in told), *STATISTICS)) if m in known]
    names = _chosen(table.layers(), {layer for _, layer in told})
    found: dict[str, list[tuple[str, Series]]] = {}
    # By layer first: a layer is a file, and the reader keeps the last one open.
    for layer, metric, series in _points(table, names, wanted):
        found.setdefault(metric, []).append((layer, series))
    maps = [_layer_map(metric, found[metric], run.first_step, run.last_step) for metric in wanted if metric in found]
    left_out = len(table.layers()) - len(names)
    return [m.model_copy(update={"left_out": left_out}) for m in maps[:MAX_MAPS]], max(len(maps) - MAX_MAPS, 0)


def share_maps(run: Run) -> tuple[list[Rows], int]:
    """Return the routing and addressing shares of a run, one map a block, and how many blocks had no room."""
    if run.shares is None:
        return [], 0
    blocks = run.shares.blocks()
    maps = []
    for block in blocks[:MAX_BLOCKS]:
        step, shares = run.shares.shares(block)
        if len(step):
            maps.append(_share_map(block, step, shares))
    return maps, max(len(blocks) - MAX_BLOCKS, 0)


def cells_of(rows: Rows) -> np.ndarray:
    """Return the bytes of a map, one row a layer or expert."""
    flat = np.frombuffer(base64.b64decode(rows.cells), dtype=np.uint8)
    return flat.reshape(len(rows.rows), rows.columns)


def _chosen(layers: Sequence[str], told: Collection[str]) -> list[str]:
    if len(layers) <= MAX_ROWS:
        return list(layers)
    kept = {layer for layer in layers if layer in told}
    even = np.linspace(0, len(layers) - 1, max(MAX_ROWS - len(kept), 0)).round().astype(int)
    kept |= {layers[i] for i in even}
    return [layer for layer in layers if layer in kept][:MAX_ROWS]


def _points(table: LayerTable, names: Sequence[str], metrics: Sequence[str]) -> Iterator[tuple[str, str, Series]]:
    for layer in names:
        for metric in metrics:
            series = table.series(layer, metric)
            if len(series):
                yield layer, metric, series


def _layer_map(metric: str, layers: Sequence[tuple[str, Series]], first: int, last: int) -> Rows:
    columns = min(COLUMNS, max(len(s) for _, s in layers))
    table = np.stack([_greatest(s.step, s.value, first, last, columns) for _, s in layers])
    low, high, log = _scale(table)
    return Rows(
        title=metric,
        rows=[short(layer) for layer, _ in layers],
        first=first,
        last=last,
        columns=columns,
        low=low,
        high=high,
        log=log,
        cells=_coded(table, low, high, log=log),
        peak=[_peak(s.step, s.value) for _, s in layers],
        end=[_last(s.value) for _, s in layers],
    )


def _share_map(block: str, step: IntArray, shares: FloatArray) -> Rows:
    first, last, count = int(step[0]), int(step[-1]), shares.shape[1]
    columns = min(COLUMNS, len(step))
    # Those that strayed furthest from an even share, in their own order.
    stray = np.nanmax(np.abs(np.nan_to_num(shares) - 1 / count), axis=0)
    kept = np.sort(np.argsort(-stray, kind="stable")[:MAX_ROWS])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.clip(np.log2(shares[:, kept] * count), -EVEN, EVEN)
    table = np.stack([_greatest(step, logs[:, i], first, last, columns) for i in range(len(kept))])
    return Rows(
        title=short(block),
        rows=[str(i) for i in kept],
        first=first,
        last=last,
        columns=columns,
        low=-EVEN,
        high=EVEN,
        log=False,
        cells=_coded(table, -EVEN, EVEN, log=False),
        peak=[_peak(step, shares[:, i]) for i in kept],
        end=[_last(shares[:, i]) for i in kept],
        left_out=count - len(kept),
    )


def _greatest(step: IntArray, value: FloatArray, first: int, last: int, columns: int) -> FloatArray:
    """Return the greatest value of each column, NaN for nothing yet, infinity where one was not finite."""
    at = np.minimum((step - first) / max(last - first + 1, 1) * columns, columns - 1).astype(np.int64)
    row = np.full(columns, -np.inf)
    np.maximum.at(row, at, np.where(np.isfinite(value), value, np.inf))
    filled = np.maximum.accumulate(np.where(np.isneginf(row), -1, np.arange(columns)))
    return np.where(filled < 0, np.nan, row[np.maximum(filled, 0)])


def _scale(table: FloatArray) -> tuple[float, float, bool]:
    finite = table[np.isfinite(table)]
    if not len(finite):
        return 0.0, 1.0, False
    low, high = (float(q) for q in np.quantile(finite, [0.002, 0.998]))
    positive = finite[finite > 0]
    # Zeros (a frozen layer) are drawn as the least of what is not zero.
    if (finite >= 0).all() and len(positive) and high >= LOG_RATIO / 5 * float(np.quantile(positive, 0.01)):
        low = max(float(np.quantile(positive, 0.002)), high * 1e-6)
        return float(f"{low:.6g}"), float(f"{high:.6g}"), True
    if high <= low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return float(f"{low:.6g}"), float(f"{high:.6g}"), False


def _coded(table: FloatArray, low: float, high: float, *, log: bool) -> str:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(np.maximum(table, low) / low) / np.log(high / low) if log else (table - low) / (high - low)
    codes = np.clip(np.nan_to_num(share, posinf=1.0) * (GREATEST - LEAST) + LEAST, LEAST, GREATEST).round()
    codes = np.where(np.isnan(table), NOTHING, np.where(np.isinf(table), NON_FINITE, codes))
    return base64.b64encode(codes.astype(np.uint8).tobytes()).decode()


def _peak(step: IntArray, value: FloatArray) -> tuple[int, Number] | None:
    finite = np.flatnonzero(np.isfinite(value))
    if not len(finite):
        return None
    at = int(finite[np.argmax(value[finite])])
    return int(step[at]), exact(float(value[at]))


def _last(value: FloatArray) -> Number | None:
    from trainscope.report.build import number

    return number(float(value[-1])) if len(value) else None
