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
    np.testing.assert_array_equal(lines.values, whole.values)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(LOG),
        LOG.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + LOG,
        LOG + b"\0\n" + LOG,
        LOG + b"\xe9t\xe9\n" + LOG,
        LOG.replace(b"\n", b"\r"),
    ],
    ids=["gzip", "utf-16", "mark", "nul", "latin-1", "carriage returns"],
)
def test_what_needs_a_second_look_is_read_as_a_whole(data: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, "a.log", data)
    with pytest.raises(UnusualTextError):
        lines_of_large(Source(str(path)))
    assert sum(len(run.series["train/loss"]) for run in read_runs(path)) >= 500


def test_small_files_and_pipes_are_read_as_a_whole(tmp_path: Path) -> None:
    assert not is_large(Source(str(write(tmp_path, "a.log", b"loss 1\n" * 100))))
    assert not is_large(Source("-", b"loss 1\n" * 10_000_000))
    assert not is_large(Source(str(tmp_path)))
