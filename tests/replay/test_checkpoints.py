"""The step of a checkpoint is read from its name, as every trainer writes it."""

from __future__ import annotations

import pytest

from trainscope.core.errors import ReadError
from trainscope.replay.checkpoints import Checkpoint, in_folder, last_before, of_run, step_of


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step_4400.pt", 4400),
        ("4400.pt", 4400),
        ("checkpoint-4400", 4400),
        ("epoch=3-step=4400.ckpt", 4400),
        ("global_step4400", 4400),
        ("iter_0004400", 4400),
        ("model-step4400-loss2.71.safetensors", 4400),
        ("ckpt_4400_rank0.pt", 4400),
        ("run7-4400.bin", 4400),
        ("last.ckpt", None),
        ("model.pt", None),
        ("tokenizer", None),
    ],
)
def test_the_step_is_the_one_the_name_says(name, step):
    assert step_of(name) == step


def test_a_folder_is_listed_by_step_and_rubbish_is_left_out(tmp_path):
    for name in ("checkpoint-300", "checkpoint-1000"):
        (tmp_path / name).mkdir()
    for name in ("step_20.pt", "step_40.pt.part", ".hidden_7", "config.json", "last.pt"):
        (tmp_path / name).touch()
    assert [one.step for one in in_folder(tmp_path)] == [20, 300, 1000]


def test_the_latest_that_is_early_enough_is_taken():
    found = [Checkpoint(100, "a"), Checkpoint(200, "b"), Checkpoint(300, "c")]
    assert last_before(found, 250) == found[1]
    assert last_before(found, 200) == found[1]
    assert last_before(found, 99) is None


def test_a_run_without_a_folder_of_them_has_none(tmp_path):
    assert of_run(tmp_path, "checkpoints") == []


def test_a_folder_that_is_none_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match="is a file; name the folder"):
        in_folder(tmp_path / "file")
    with pytest.raises(ReadError, match="cannot be listed \\(no such file"):
        in_folder(tmp_path / "nowhere")
