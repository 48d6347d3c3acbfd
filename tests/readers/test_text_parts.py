"""Numbers kept in parts are all there, in their order, wherever a part ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.readers import read_runs, text_parts
from trainscope.readers.text_lines import lines_of
from trainscope.readers.text_parts import Filling
from trainscope.readers.text_rows import rows_of

from .logs import write
from .printed import PRINTED
from .test_text_large import _told


@pytest.mark.parametrize("size", [1, 7, 10, 1000])
def test_parts_hold_what_was_added(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "PART_NUMBERS", size)
    widths = [np.array(w, np.int32) for w in ([3, 0, 2], [0], [12], [1, 1], [])]
    values = np.split(np.arange(19.0), np.cumsum([int(w.sum()) for w in widths])[:-1])
    filling = Filling()
    for width, value in zip(widths, values, strict=True):
        filling.add(width, value)
    parts = filling.parts()
    np.testing.assert_array_equal(np.concatenate([p.values for p in parts]), np.arange(19.0))
    np.testing.assert_array_equal(np.concatenate([p.width for p in parts]), np.concatenate(widths))
    assert [p.first for p in parts] == np.cumsum([0, *(len(p.width) for p in parts)]).tolist()[:-1]


def test_rows_of_several_templates_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "PART_NUMBERS", 50)
    monkeypatch.setattr("trainscope.readers.text_lines.BLOCK_BYTES", 200)
    text = "".join(f"step {i} loss {i}.5\n" if i % 3 else f"other\nat {i} loss {i}.5 in step {i}\n" for i in range(200))
    lines = lines_of(text.encode())
    assert len(lines.parts) > 5
    first, second = (i for i, t in enumerate(lines.templates) if "loss" in t.text)
    long = "at" in lines.templates[first].text
    picks = [(first, [2, 1] if long else [0, 1]), (second, [0, 1] if long else [2, 1])]
    (rows,) = rows_of([picks], lines)
    assert rows.line.tolist() == [n for n, line in enumerate(text.splitlines()) if "loss" in line]
    np.testing.assert_array_equal(rows.values, [[i, i + 0.5] for i in range(200)])
    assert lines.parts == []  # the numbers are not in memory twice


@pytest.mark.parametrize("trainer", PRINTED)
def test_a_log_in_many_parts_says_what_one_part_says(
    trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "train.log", PRINTED[trainer]().text)
    whole = _told(read_runs(path))
    monkeypatch.setattr(text_parts, "PART_NUMBERS", 100)
    monkeypatch.setattr("trainscope.readers.text_lines.BLOCK_BYTES", 500)
    assert _told(read_runs(path)) == whole
