"""The same rows give the same series, whatever they are written in."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.run import Run

from .logs import as_csv, as_jsonl, as_state, only, write

Rows = list[dict[str, Any]]

WRITERS: dict[str, Callable[[Rows], str | bytes]] = {
    "plain.jsonl": as_jsonl,
    "crlf.jsonl": lambda rows: as_jsonl(rows, "\r\n"),
    "bom.jsonl": lambda rows: b"\xef\xbb\xbf" + as_jsonl(rows).encode(),
    "utf16.jsonl": lambda rows: as_jsonl(rows).encode("utf-16"),
    "no_newline_at_end.jsonl": lambda rows: as_jsonl(rows).rstrip("\n"),
    "blank_lines.jsonl": lambda rows: as_jsonl(rows, "\n\n"),
    "lines.json": as_jsonl,
    "lines.log": as_jsonl,
    "array.json": lambda rows: "[" + ",\n".join(as_jsonl(rows).splitlines()) + "]",
    "array_on_one_line.json": lambda rows: "[" + ",".join(as_jsonl(rows).splitlines()) + "]",
    "packed.jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows).encode()),
    "packed.jsonl.bz2": lambda rows: bz2.compress(as_jsonl(rows).encode()),
    "packed.jsonl.xz": lambda rows: lzma.compress(as_jsonl(rows).encode()),
    "packed_without_suffix": lambda rows: gzip.compress(as_csv(rows).encode()),
    "wrapped.jsonl": lambda rows: as_jsonl(
        [{"step": row["step"], "metrics": {k: v for k, v in row.items() if k != "step"}} for row in rows]
    ),
    "strings.jsonl": lambda rows: as_jsonl([{k: str(v) for k, v in row.items()} for row in rows]),
    "reprs.jsonl": lambda rows: as_jsonl(
        [{k: v if k == "step" else f"tensor({v!r}, device='cuda:0')" for k, v in row.items()} for row in rows]
    ),
    "plain.csv": as_csv,
    "crlf.csv": lambda rows: as_csv(rows, newline="\r\n"),
    "mac.csv": lambda rows: as_csv(rows, newline="\r"),
    "utf16.csv": lambda rows: as_csv(rows).encode("utf-16"),
    "utf16_without_mark.csv": lambda rows: as_csv(rows).encode("utf-16-le"),
    "tabs.tsv": lambda rows: as_csv(rows, "\t"),
    "tabs.txt": lambda rows: as_csv(rows, "\t"),
    "semicolon.csv": lambda rows: as_csv(rows, ";"),
    "decimal_comma.csv": lambda rows: as_csv(rows, ";", ","),
    "bars.csv": lambda rows: as_csv(rows, "|"),
    "excel.csv": lambda rows: "sep=;\n" + as_csv(rows, ";"),
    "commented.csv": lambda rows: "# made by hand\n" + as_csv(rows),
    "padded.csv": lambda rows: "\n".join(
        ",".join(f"{cell:>24}" for cell in line.split(",")) for line in as_csv(rows).splitlines()
    ),
    "spaced.csv": lambda rows: as_csv(rows).replace(",", ", "),
    "quoted.csv": lambda rows: "\n".join(
        ",".join(f'"{cell}"' for cell in line.split(",")) for line in as_csv(rows).splitlines()
    ),
    "table.log": as_csv,
    "index.csv": lambda rows: "\n".join(
        ("" if i == 0 else str(i - 1)) + "," + line for i, line in enumerate(as_csv(rows).splitlines())
    ),
    "nameless_index.csv": lambda rows: "\n".join(
        line if i == 0 else f"{i - 1},{line}" for i, line in enumerate(as_csv(rows).splitlines())
    ),
    "trailing_delimiter.csv": lambda rows: as_csv(rows).replace("\n", ",\n"),
    "trainer_state.json": as_state,
    "renamed_state.json": as_state,
}


def _series(run: Run) -> dict[str, tuple[list[int], list[float]]]:
    return {name: (s.step.tolist(), s.value.tolist()) for name, s in sorted(run.series.items())}


@pytest.mark.parametrize("name", WRITERS)
def test_series_do_not_depend_on_how_the_rows_are_written(name: str, rows: Rows, tmp_path: Path) -> None:
    run = only(write(tmp_path, name, WRITERS[name](rows)))
    train = [row for row in rows if "loss" in row]
    evals = [row for row in rows if "eval_loss" in row]
    assert _series(run) == {
        "eval/loss": ([r["step"] for r in evals], [r["eval_loss"] for r in evals]),
        "learning_rate": ([r["step"] for r in train], [r["lr"] for r in train]),
        "train/grad_norm": ([r["step"] for r in train], [r["grad_norm"] for r in train]),
        "train/loss": ([r["step"] for r in train], [r["loss"] for r in train]),
    }
    assert run.x_axis == "step"


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_but_the_encoding_is_worth_a_note(name: str, rows: Rows, tmp_path: Path) -> None:
    run = only(write(tmp_path, name, WRITERS[name](rows)))
    assert {note.kind for note in run.notes} <= {"encoding"}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_the_fast_parser_and_the_tolerant_one_agree(suffix: str, rows: Rows, tmp_path: Path, monkeypatch) -> None:
    from trainscope.readers import csv_rows, json_rows

    rows[3]["note"] = "warm\u00fc"
    rows[5]["grad_norm"] = float("inf") if suffix == "csv" else 7
    path = write(tmp_path, f"log.{suffix}", as_jsonl(rows) if suffix == "jsonl" else as_csv(rows))
    slow = only(path)
    monkeypatch.setattr(json_rows, "ARROW_FROM", 0)
    monkeypatch.setattr(csv_rows, "ARROW_FROM", 0)
    fast = only(path)
    assert _series(fast) == _series(slow)
    assert [n.kind for n in fast.notes] == [n.kind for n in slow.notes]


def test_the_fast_parser_reads_what_the_json_and_csv_modules_read(rows: Rows, tmp_path: Path, monkeypatch) -> None:
    import csv
    import io
    import json

    from trainscope.readers import csv_rows, json_rows

    random = np.random.default_rng(5)
    big = [{"step": i, "loss": float(v), "lr": 1e-3} for i, v in enumerate(random.lognormal(size=3000))]
    monkeypatch.setattr(json_rows, "ARROW_FROM", 0)
    monkeypatch.setattr(csv_rows, "ARROW_FROM", 0)
    for name, text in (("a.jsonl", as_jsonl(big)), ("a.csv", as_csv(big))):
        parsed = (
            [json.loads(line) for line in text.splitlines()]
            if name.endswith("l")
            else list(csv.DictReader(io.StringIO(text)))
        )
        run = only(write(tmp_path, name, text))
        assert run.series["train/loss"].value.tolist() == [float(row["loss"]) for row in parsed]
        assert run.series["train/loss"].step.tolist() == [int(row["step"]) for row in parsed]
