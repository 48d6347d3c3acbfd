"""Whatever the bytes, a reader returns sound runs or raises one of our errors in one line."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainscope.core.errors import TrainscopeError
from trainscope.core.run import Run
from trainscope.readers import READERS, csv_rows, json_rows, reader_for
from trainscope.readers.source import Source

pytestmark = pytest.mark.slow

TEXT_READERS = [reader.NAME for reader in READERS if reader.NAME != "tensorboard"]
FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def _read(data: bytes, name: str | None) -> list[Run]:
    source = Source("fuzz.csv", data)
    runs: list[Run] = []
    refusal = ""
    try:
        runs = reader_for(source, name).read_runs(source)
    except TrainscopeError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert bool(runs) != bool(refusal)
    for run in runs:
        assert run.series
        for series in run.series.values():
            assert len(series)
            assert (np.diff(series.step) > 0).all()
        for note in run.notes:
            assert note.message.isprintable()
            assert note.count >= 1
    return runs


@FUZZ
@given(st.binary(max_size=400))
def test_arbitrary_bytes_never_raise_anything_else(data: bytes) -> None:
    for name in (None, *TEXT_READERS):
        _read(data, name)


_KEYS = st.sampled_from(
    [
        "step",
        "loss",
        "epoch",
        "lr",
        "eval_loss",
        "time",
        "timestamp",
        "run",
        "phase",
        "train_runtime",
        "x.mean",
        "value",
    ]
)
_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 40),
    st.integers(),
    st.floats(),
    st.sampled_from(["nan", "3/10", "train", "val", "0:01:02", "2024-01-01T00:00:00", "", "\x1b[0m"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["loss", "mean", "step"]), st.floats(), max_size=2),
)


@FUZZ
@given(
    st.lists(st.dictionaries(_KEYS, _VALUES, max_size=6), max_size=30),
    st.sampled_from(["lines", "array", "state"]),
)
def test_arbitrary_records_never_raise_anything_else(records: list[dict[str, Any]], form: str) -> None:
    text = {
        "lines": "".join(json.dumps(record) + "\n" for record in records),
        "array": json.dumps(records),
        "state": json.dumps({"log_history": records}),
    }[form]
    _read(text.encode(), None)
    _read(text.encode(), {"lines": "jsonl", "array": "json", "state": "hf_trainer"}[form])


_CELLS = st.sampled_from(["1", "2", "0.5", "-3e4", "nan", "inf", "", " ", "x", '"a,b"', "1,5", "3/9", "#", "é", "step"])


@FUZZ
@given(st.lists(st.lists(_CELLS, min_size=1, max_size=5), min_size=1, max_size=20), st.sampled_from(",;\t|"))
@pytest.mark.parametrize("arrow_from", [0, 1 << 40])
def test_arbitrary_tables_never_raise_anything_else(
    arrow_from: int, monkeypatch: pytest.MonkeyPatch, rows: list[list[str]], delimiter: str
) -> None:
    monkeypatch.setattr(csv_rows, "ARROW_FROM", arrow_from)
    monkeypatch.setattr(json_rows, "ARROW_FROM", arrow_from)
    data = ("step,loss,lr\n".replace(",", delimiter) + "\n".join(delimiter.join(row) for row in rows)).encode()
    for name in (None, "csv", "wandb", "lightning", "wandb_chart"):
        _read(data, name)
