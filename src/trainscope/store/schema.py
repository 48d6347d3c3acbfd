"""Arrow schemas of a recorded run, version 2, and how older and newer files are read.

Contract: within a major version columns are only added, and every column but ``step`` and the key
columns is nullable. A reader ignores columns it does not know and supplies nulls for those a file lacks.
The names of version 1 (trainscope 1.x) keep their meaning, so one reader reads both.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

SCHEMA_VERSION = "2.0"
"""2.0: journal, hashed names, spike windows as streams. 1.x: trees written by trainscope 1.x."""

VERSION_KEY = b"trainscope.schema"
LAYER_KEY = b"trainscope.layer"

SCALAR_COLUMNS: dict[str, pa.DataType] = {
    "loss": pa.float64(),
    "grad_norm_before_clip": pa.float64(),
    "grad_norm_after_clip": pa.float64(),
    "lr": pa.float64(),
    "optimizer_v_norm": pa.float64(),
    "step_time_ms": pa.float64(),
    "batch_index": pa.int64(),
    "is_spike": pa.bool_(),
    "cpu_memory_mb": pa.float64(),
    "cuda_memory_mb": pa.float64(),
    "spike_score": pa.float64(),
    "optimizer_m_norm": pa.float64(),
    "update_norm": pa.float64(),
    "weight_norm": pa.float64(),
    "grad_scale": pa.float64(),
    "step_skipped": pa.bool_(),
    "micro_batches": pa.int64(),
    "wall_time": pa.float64(),
    "noise_growth": pa.float64(),
}
"""Columns of ``global.arrow`` beside ``step``.

``loss`` raw, as handed over. ``grad_norm_*`` global L2, unscaled, over all shards. ``lr`` of the first
parameter group. ``optimizer_m_norm``, ``optimizer_v_norm`` L2 over all first and second moments.
``step_time_ms`` milliseconds. ``*_memory_mb`` MiB now. ``grad_scale`` of the GradScaler; ``step_skipped``
it refused to step. ``wall_time`` Unix seconds. ``noise_growth`` times the noise of the loss is as large as
ever before, at the step where that was told.
"""

LAYER_COLUMNS: tuple[str, ...] = (
    "grad_l2_norm",
    "grad_max_abs",
    "grad_mean",
    "grad_nan_inf_ratio",
    "weight_l2_norm",
    "weight_mean",
    "weight_std",
    "weight_min",
    "weight_max",
    "weight_max_abs",
    "update_l2_norm",
    "update_ratio",
    "adam_m_norm",
    "adam_v_norm",
    "rms_t",
    "act_mean",
    "act_std",
    "act_min",
    "act_max",
    "act_median",
    "act_max_abs",
    "act_kurtosis",
    "act_dead_fraction",
    "attn_logit_max",
    "attn_entropy",
)
"""Float64 columns of ``layers/<name>.arrow`` beside ``step``; histograms follow as lists.

``update_ratio`` is update norm over weight norm. ``rms_t`` is the root mean square of gradient over sqrt(v)
(StableAdamW). ``act_kurtosis`` is excess kurtosis. ``attn_entropy`` is in nat.
"""

HISTOGRAM_COLUMNS = ("hist_counts", "hist_edges")


def place(statistic: str) -> int:
    """Return where a statistic stands among :data:`LAYER_COLUMNS`, after all of them where it is not one."""
    return LAYER_COLUMNS.index(statistic) if statistic in LAYER_COLUMNS else len(LAYER_COLUMNS)


def global_schema(extra: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of ``global.arrow``; `extra` names become nullable floats at the end."""
    known = [pa.field(name, kind) for name, kind in SCALAR_COLUMNS.items()]
    return _versioned([_step(), *known, *(pa.field(name, pa.float64()) for name in extra)])


def layer_schema(layer: str, extra: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of one layer's file; its metadata has the full name, whatever the file is called."""
    fields = [_step(), *statistic_fields((*LAYER_COLUMNS, *extra)), *histogram_fields()]
    return _versioned(fields, {LAYER_KEY: layer.encode()})


def journal_schema(columns: Iterable[str], *, histograms: bool) -> pa.Schema:
    """Return the schema of a journal segment: all layers of a step in one record batch."""
    layer = pa.field("layer", pa.dictionary(pa.int32(), pa.string()), nullable=False)
    return _versioned([_step(), layer, *statistic_fields(columns), *(histogram_fields() if histograms else ())])


def extra(*found: pa.Schema) -> tuple[str, ...]:
    """Return the statistics in any of the schemas that :data:`LAYER_COLUMNS` does not list."""
    known = {"step", "layer", *LAYER_COLUMNS, *HISTOGRAM_COLUMNS}
    return tuple(dict.fromkeys(name for s in found for name in s.names if name not in known))


def statistic_fields(columns: Iterable[str]) -> list[pa.Field]:
    """Return one nullable float field a statistic."""
    return [pa.field(name, pa.float64()) for name in columns]


def histogram_fields() -> list[pa.Field]:
    """Return the two list fields of a histogram."""
    return [pa.field(name, pa.list_(pa.float64())) for name in HISTOGRAM_COLUMNS]


def shares_schema() -> pa.Schema:
    """Return the schema of ``moe.arrow``: one row a block and step."""
    return _versioned(
        [
            _step(),
            pa.field("block", pa.string(), nullable=False),
            pa.field("shares", pa.list_(pa.float64())),
        ]
    )


def plugin_schema() -> pa.Schema:
    """Return the schema of ``plugin_metrics.arrow``."""
    text = [pa.field(name, pa.string(), nullable=False) for name in ("plugin", "metric")]
    return _versioned([_step(), *text, pa.field("value", pa.float64())])


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `table` with the columns of `schema` first, null where it lacks one, and what else it has after.

    Raises
    ------
    pyarrow.ArrowException
        If a column cannot be read as the type the schema gives it; those of :func:`sound.part_of` can.
    """
    arrays, fields = [], []
    for field in schema:
        if field.name in table.schema.names:
            arrays.append(table.column(field.name).cast(field.type, safe=False))
        else:
            arrays.append(pa.chunked_array([pa.nulls(len(table), field.type)]))
        fields.append(field)
    for extra in table.schema:
        if extra.name not in schema.names:
            arrays.append(table.column(extra.name))
            fields.append(extra)
    return pa.table(arrays, schema=pa.schema(fields, metadata=schema.metadata))


def _step() -> pa.Field:
    return pa.field("step", pa.int64(), nullable=False)


def _versioned(fields: list[pa.Field], more: dict[bytes, bytes] | None = None) -> pa.Schema:
    return pa.schema(fields, metadata={VERSION_KEY: SCHEMA_VERSION.encode(), **(more or {})})
