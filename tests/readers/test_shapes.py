"""Files that are written in an unusual shape: endless lines, objects over several lines, spaces, archives."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from trainscope.core.errors import NoReaderError, ReadError
from trainscope.readers import read_runs
from trainscope.readers.source import HEAD_BYTES, WIDE_HEAD_BYTES, _bounded
from trainscope.readers.table import MAX_COLUMNS

from .logs import as_jsonl, kinds, only, points, write


def test_a_header_beyond_the_first_look_is_read(tmp_path: Path) -> None:
    names = [f"layer_{i}_with_a_long_name/weight_norm" for i in range(3000)]
    header = ",".join(["step", "loss", *names])
    assert len(header) > HEAD_BYTES
    body = "".join(f"{s},{3 - s / 100}," + ",".join(["1.5"] * 3000) + "\n" for s in range(40))
    run = only(write(tmp_path, "a.csv", header + "\n" + body))
    assert len(run.series) == 3001
    assert points(run, "train/loss")[39] == (39, 2.61)


def test_a_first_line_without_end_is_refused_for_that_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "word " * (WIDE_HEAD_BYTES // 4))
    with pytest.raises(NoReaderError, match="its first line is longer than 4 MiB, and not JSON"):
        read_runs(path)


def test_a_large_binary_file_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(random.Random(0).randbytes(4 * HEAD_BYTES))
    with pytest.raises(NoReaderError, match="a binary file that is no event file"):
        read_runs(path)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
def test_more_names_than_a_table_has_room_for_are_refused(rows: int, tmp_path: Path) -> None:
    wide = [{"step": s, "loss": 1.0, **dict.fromkeys((f"m{i}" for i in range(MAX_COLUMNS)), 0.5)} for s in range(rows)]
    new = [{"step": s, "loss": 1.0, f"m{s}": 0.5} for s in range(MAX_COLUMNS + 10)]
    header = ",".join(wide[0])
    logs = {
        "wide.jsonl": as_jsonl(wide),
        "new.jsonl": as_jsonl(new),
        "new_and_large.jsonl": as_jsonl([{**row, "text": "x" * 500} for row in new]),
        "wide.csv": header + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in wide),
        "wide.json": json.dumps(wide),
        "arrays.json": json.dumps({name: [1.0, 2.0] for name in wide[0]}),
    }
    for name, text in logs.items():
        with pytest.raises(ReadError, match=f"{name}: has more than {MAX_COLUMNS} different metric names"):
            read_runs(write(tmp_path, name, text))


def test_many_names_below_the_limit_are_read(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 1.0 / (s + 1), f"m{s}": 0.5} for s in range(1500)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert len(run.series) == 1501


@pytest.mark.parametrize(("indent", "between"), [(2, "\n"), (4, ""), (2, ",\n"), (None, " ")])
def test_objects_over_several_lines_are_read_one_after_the_other(
    indent: int | None, between: str, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    text = between.join(json.dumps(row, indent=indent) for row in rows)
    run = only(write(tmp_path, "a.json", text))
    plain = only(write(tmp_path, "b.jsonl", as_jsonl(rows)))
    assert points(run, "train/loss") == points(plain, "train/loss")
    assert points(run, "eval/loss") == points(plain, "eval/loss")
    assert kinds(run) == []


def test_objects_over_several_lines_are_read_up_to_a_cut(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    text = "\n".join(json.dumps(row, indent=2) for row in rows)
    run = only(write(tmp_path, "a.json", text[:-9]))
    assert kinds(run) == ["truncated"]
    assert len(run.series["train/loss"]) == 40


def test_columns_apart_by_spaces_are_read(tmp_path: Path) -> None:
    lines = ["  step       loss        lr", *(f"{s:6d} {3 - s / 100:10.4f}  {1e-3:8.1e}" for s in range(50))]
    run = only(write(tmp_path, "a.txt", "\n".join(lines) + "\n"))
    assert points(run, "train/loss")[49] == (49, 2.51)
    assert len(run.series["learning_rate"]) == 50
    assert kinds(run) == []


def test_sentences_of_equally_many_words_are_text_and_no_table(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.txt", "epoch 1 loss 2.5\nepoch 2 loss 2.4\nepoch 3 loss 2.3\n"))
    assert run.format == "text"
    assert points(run, "train/loss") == [(1, 2.5), (2, 2.4), (3, 2.3)]


def test_a_header_with_a_line_break_in_quotes_is_read(tmp_path: Path) -> None:
    text = 'step,"loss\n(nats)",lr\n' + "".join(f"{s},{3 - s / 100},0.1\n" for s in range(50))
    run = only(write(tmp_path, "a.csv", text))
    assert points(run, "train/loss")[49] == (49, 2.51)
    assert len(run.series["train/loss"]) == 50
    assert kinds(run) == []


def test_an_archive_is_refused_with_what_to_do(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("metrics.csv", "step,loss\n1,2\n")
    for name, data, kind in (("a.zip", packed.getvalue(), "zip"), ("a.zst", b"\x28\xb5\x2f\xfd" + bytes(99), "zstd")):
        with pytest.raises(NoReaderError, match=f"{name}: a {kind} archive; unpack it first"):
            read_runs(write(tmp_path, name, data))


WRONG_SUM = gzip.compress(b"step,loss\n1,2\n", mtime=0)[:-8] + bytes(8)


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08\x00garbage that is no deflate stream", b"BZh9" + bytes(50), WRONG_SUM])
def test_a_compressed_file_that_is_all_damage_is_not_called_empty(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="damaged compressed file"):
        read_runs(write(tmp_path, "a.csv.gz", data))


def test_json_that_is_nested_too_deeply_is_refused_for_that_reason(tmp_path: Path) -> None:
    for text in ("[" * 20000 + "]" * 20000, '{"a":' * 9000 + "1" + "}" * 9000):
        with pytest.raises(ReadError, match="nested too deeply"):
            read_runs(write(tmp_path, "a.json", text))


def test_a_stream_is_read_up_to_its_limit() -> None:
    assert _bounded(io.BytesIO(b"x" * 100), "-", limit=100) == b"x" * 100
    with pytest.raises(ReadError, match="holds more than"):
        _bounded(io.BytesIO(b"x" * 101), "-", limit=100)


@pytest.mark.parametrize("name", ["csv", "wandb", "lightning"])
def test_a_first_column_of_infinities_is_read_without_a_warning(name, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss,lr\ninf,1,1,1\ninf,1,1,1")
    assert read_runs(path, format=name)
