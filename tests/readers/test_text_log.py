"""Free text: what trainers print is found, named and counted, in a file and in a folder, and the run says how."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.errors import NoDataError
from trainscope.readers import find_logs, read_runs

from .logs import only, points, run_of_text, write
from .printed import PRINTED


@pytest.mark.parametrize("trainer", PRINTED)
def test_what_a_trainer_prints_is_read_to_the_digit(trainer: str, tmp_path: Path) -> None:
    printed = PRINTED[trainer]()
    run = only(write(tmp_path, "train.log", printed.text))
    assert (run.format, run.x_axis) == ("text", printed.axis)
    for name, wanted in (
        ("train/loss", printed.train),
        ("eval/loss", printed.evaluation),
        ("train/reward", printed.reward),
    ):
        if wanted:
            assert points(run, name) == wanted
    if not printed.evaluation:
        assert "eval/loss" not in run.series


def test_the_notes_say_what_was_taken_for_what() -> None:
    run = run_of_text(PRINTED["nanogpt"]().text)
    note = next(n for n in run.notes if n.kind == "text_lines")
    assert note.message.startswith("204 lines of 204 hold metrics; the step was taken from 'iter'")
    assert "train/loss from 'loss'" in note.message
    assert "eval/loss from 'val loss'" in note.message


def test_the_format_can_be_forced(tmp_path: Path) -> None:
    path = write(tmp_path, "log.md", PRINTED["nanogpt"]().text)
    assert only(path, format="text").format == "text"


def test_a_log_that_begins_with_a_long_dump_is_found_in_a_file_and_in_a_folder(tmp_path: Path) -> None:
    dump = "".join(f"    x{i} = function_{i}(y, z)\n" for i in range(8000))
    path = write(tmp_path, "train.txt", dump + PRINTED["torchtitan"]().text)
    write(tmp_path, "prose.txt", "nothing to see 1\n" * 3000)
    assert len(dump) > 1 << 16
    assert only(path).format == "text"
    assert find_logs([str(tmp_path)]) == [str(path)]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_make_no_difference(ends: str) -> None:
    text = PRINTED["loop_by_hand"]().text.replace("\n", ends)
    assert points(run_of_text(text), "train/loss") == PRINTED["loop_by_hand"]().train


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "gbk"])
def test_encodings_make_no_difference(encoding: str) -> None:
    text = "é start\n" if encoding != "gbk" else "训练开始\n"
    run = run_of_text((text + PRINTED["loop_by_hand"]().text).encode(encoding))
    assert points(run, "train/loss") == PRINTED["loop_by_hand"]().train


def test_an_empty_text_has_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="empty"):
        read_runs(write(tmp_path, "a.log", "\n\n"), format="text")


def _close(a: object, b: object) -> bool:
    return (a is None and b is None) or (str(a) == str(b)) or math.isclose(float(a), float(b), rel_tol=1e-6)  # type: ignore[arg-type]


@pytest.mark.slow
def test_real_logs_have_the_values_that_the_annotator_found(shared: Path) -> None:
    # Left out: where the annotator counted training and validation lines, or two launches, as one series.
    same = [
        "olmo1b_tied_emb10",
        "olmo1b_reproduce",
        "llmc_main_124m",
        "modded_2024_06_adamw",
        "mn_2024_10_soap",
        "mn_2024_10_muon",
        "mn_fp4",
        "pg_mixedquant",
        "pg_fp16embed",
        "gail_ppo_table",
        "cyclegan_samcw",
        "deblurgan",
        "resnet50_v1_imagenet",
        "cifar_rn110_mixup",
        "xlnet_cola",
        "wrn_torch7",
        "nyu_det_lr004_warmup",
        "nyu_det_lr04_balance",
        "dschat_ppo",
        "bs_meg_3d_dson",
    ]
    folder = shared / "corpus" / "real"
    entries: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text())["files"]
    for entry in (e for e in entries if e["name"] in same):
        stats, metric = entry["stats"], entry["stats"]["primary_metric"]
        runs = read_runs(folder / entry["file"])
        name = next(n for n in ("train/loss", f"eval/{metric}", metric) if n in runs[-1].series)
        value = np.concatenate([run.series[name].value for run in runs])
        finite = value[np.isfinite(value)]
        found = (len(value), value[0], value[-1], finite.min(), finite.max())
        wanted = tuple(stats[key] for key in ("n_points", "first", "last", "min", "max"))
        assert all(map(_close, found, wanted)), (entry["file"], found, wanted)
