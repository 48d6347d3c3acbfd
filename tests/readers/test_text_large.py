"""Texts that are read a block at a time say the same as those that are read as a whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from trainscope.core.run import Run
from trainscope.readers import read_runs, text_large
from trainscope.readers.source import Source
from trainscope.readers.text_large import UnusualTextError, is_large, lines_of_large
from trainscope.readers.text_lines import lines_of

from .logs import write
from .printed import PRINTED

LOG = b"".join(b"step: %d loss: %d.5\n" % (i, 900 - i) for i in range(600))


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_large, "LARGE", 1)
    monkeypatch.setattr(text_large, "BLOCK_BYTES", 1000)


def _told(runs: list[Run]) -> list[object]:
    return [
        (run.name, run.x_axis, run.notes, {n: (s.step.tolist(), s.value.tobytes()) for n, s in run.series.items()})
        for run in runs
    ]


@pytest.mark.parametrize("trainer", PRINTED)
def test_a_log_in_blocks_says_what_the_whole_says(
    trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "train.log", PRINTED[trainer]().text)
    whole = _told(read_runs(path))
    monkeypatch.setattr(text_large, "LARGE", 1)
    monkeypatch.setattr(text_large, "BLOCK_BYTES", 1000)
    assert _told(read_runs(path)) == whole


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    ("end", "text"),
    [
        (e, t)
        for e in ("\n", "")
        for t in ("loss 1.5 step 3\n" * 200, "épreuve 1,5 é\r\n" * 300, "x\n" * 999 + "y" * 900)
    ],
)
def test_blocks_hold_the_lines_of_the_whole(end: str, text: str, tmp_path: Path) -> None:
    data = (text.rstrip("\n") + end).encode()
    lines, whole = lines_of_large(Source(str(write(tmp_path, "a.log", data)))), lines_of(data)
    assert [(t.text, t.count) for t in lines.templates] == [(t.text, t.count) for t in whole.templates]
    np.testing.assert_array_equal(lines.of, whole.of)
    np.testing.assert_array_equal(lines.parts[0].values, whole.parts[0].values)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(LOG),
        LOG.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + LOG,
        LOG + b"\0\n" + LOG,
        LOG + b"\xe9t\xe9\n" + LOG,
    ],
    ids=["gzip", "utf-16", "mark", "nul", "latin-1"],
)
def test_what_needs_a_second_look_is_read_as_a_whole(data: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", data)
    with pytest.raises(UnusualTextError):
        lines_of_large(Source(str(path)))
    assert sum(len(run.series["train/loss"]) for run in read_runs(path)) >= 500


@pytest.mark.usefixtures("all_are_large")
def test_a_text_without_line_breaks_is_read_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(UnusualTextError):
        lines_of_large(Source(str(write(tmp_path, "a.log", b"loss 1 " * 10_000))))


BARS = [b"%3d%%|##  | %d/900 [00:%02d<01:00, loss=%.3f]" % (i // 9, i, i % 60, 9 / (i + 1)) for i in range(900)]


@pytest.mark.parametrize(
    "data",
    [
        b"\r".join(BARS),
        b"\r" + b"\r".join(BARS) + b"\r",
        b"".join(bar + (b"\n" if i % 300 == 299 else b"\r") for i, bar in enumerate(BARS)),
        b"started\n" + b"\r\r".join(BARS) + b"\r\n",
        b"\r\n".join(BARS) + b"\r",
        b"".join(bar + (b"\r\r\n" if i % 50 else b"\r") for i, bar in enumerate(BARS)),
    ],
    ids=["returns", "returns around", "now and then a line", "empty lines", "windows", "both"],
)
@pytest.mark.parametrize("block", [7, 1000])
def test_a_progress_bar_in_blocks_says_what_the_whole_says(
    data: bytes, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "a.log", data)
    whole = _told(read_runs(path))
    monkeypatch.setattr(text_large, "LARGE", 1)
    monkeypatch.setattr(text_large, "BLOCK_BYTES", block)
    monkeypatch.setattr(text_large, "_LONGEST_LINE", 1000)
    lines_of_large(Source(str(path)))
    assert _told(read_runs(path)) == whole


def test_small_files_and_pipes_are_read_as_a_whole(tmp_path: Path) -> None:
    assert not is_large(Source(str(write(tmp_path, "a.log", b"loss 1\n" * 100))))
    assert not is_large(Source("-", b"loss 1\n" * 10_000_000))
    assert not is_large(Source(str(tmp_path)))
