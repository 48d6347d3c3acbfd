"""Free text: what trainers print is found, named, counted and split into training and evaluation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainscope.core.errors import NoDataError, NoReaderError
from trainscope.core.run import Run
from trainscope.readers import find_logs, read_runs, reader_for
from trainscope.readers.source import Source

from .logs import kinds, only, points, write
from .printed import PRINTED, loss_at


def _run(text: str, name: str = "run.log") -> Run:
    source = Source(name, text.encode())
    (run,) = reader_for(source).read_runs(source)
    return run


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
    run = _run(PRINTED["nanogpt"]().text)
    note = next(n for n in run.notes if n.kind == "text_lines")
    assert note.message.startswith("204 lines of 204 hold metrics; the step was taken from 'iter'")
    assert "train/loss from 'loss'" in note.message
    assert "eval/loss from 'val loss'" in note.message


def test_source_code_and_settings_above_the_metrics_are_no_metrics() -> None:
    code = "\n".join(
        f"    loss = criterion(x, {i})  # step {i}: loss {i}.5\n    lr={i}.01,\n    self.step = {i}" for i in range(300)
    )
    settings = "\n".join(f"{word}: 0.{i}" for i, word in enumerate(("lr", "loss_weight", "warmup", "betas")))
    run = _run(f"{code}\n{settings}\n{PRINTED['nanogpt']().text}")
    assert points(run, "train/loss") == PRINTED["nanogpt"]().train
    assert set(run.series) == {"train/loss", "eval/loss", "train loss", "time", "mfu"}


@pytest.mark.parametrize(
    "text",
    [
        "The model reached a loss of 2.3 after 100 steps.\nIn 2019 the loss was 3.1, and 4 years later 2.2.\n" * 20,
        "\n".join(f"def step_{i}(x):\n    loss = {i}.5\n    return loss * {i}" for i in range(200)),
        "\n".join(f"learning_rate: 0.{i}\nbatch_size: {i}\nmodel:\n  depth: {i}" for i in range(100)),
        "\n".join(
            f'10.0.0.{i % 250} - - [10/Oct/2024:13:55:{i % 60:02d}] "GET /a{i} HTTP/1.1" 200 {i * 7}'
            for i in range(500)
        ),
        "\n".join(f"Downloading weights: {i}%|{'#' * (i // 10)}| {i}/100 MB" for i in range(100)),
        "\n".join(f"word{i} and number {i * 37 % 11}" for i in range(400)),
        "\n".join(f"(layer{i}): Linear(in_features={i}, out_features={2 * i}, bias=True)" for i in range(200)),
        "\n".join(f"raise ValueError(f'loss {{loss:{i}.4f}} at step {{step}}')" for i in range(100)),
    ],
    ids=["prose", "code", "settings", "web server", "download", "words", "model", "format strings"],
)
def test_texts_without_metrics_make_no_run(text: str, tmp_path: Path) -> None:
    with pytest.raises(NoReaderError, match="no metric lines found"):
        read_runs(write(tmp_path, "notes.txt", text))


def test_a_document_that_quotes_a_log_is_none(tmp_path: Path) -> None:
    quoted = "# How to train\n\n```\n" + PRINTED["nanogpt"]().text[:2000] + "\n```\n"
    with pytest.raises(NoReaderError):
        read_runs(write(tmp_path, "README.md", quoted))
    prose = "A line of words that says nothing at all about anything.\n" * 400
    few = "".join(f"step {i}: loss {5 - i}\n" for i in range(5))
    with pytest.raises(NoReaderError):
        read_runs(write(tmp_path, "howto.txt", prose + few + prose))


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


def test_running_means_of_an_epoch_are_one_value_an_epoch() -> None:
    text, wanted = "", []
    noise = np.random.default_rng(0).normal(0, 0.3, (6, 40))
    for epoch in range(6):
        values = 2 / (epoch + 1) + noise[epoch]
        for i in range(40):
            text += f"Epoch {epoch} iteration {i + 1:04d}/0040: training loss {values[: i + 1].mean():.3f}\n"
        wanted.append((epoch * 40 + 40, float(f"{values.mean():.3f}")))
    run = _run(text)
    assert points(run, "train/loss") == wanted
    assert "running_mean" in kinds(run)


def test_losses_of_single_batches_are_no_running_means() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, (6, 40))
    text = "".join(f"Epoch {e} iteration {i + 1}/40: loss {3 + noise[e, i]:.3f}\n" for e in range(6) for i in range(40))
    run = _run(text)
    assert len(run.series["train/loss"]) == 240
    assert "running_mean" not in kinds(run)


def test_lines_of_evaluation_that_use_the_same_words_are_told_apart() -> None:
    text = ""
    for epoch in range(1, 5):
        for i in range(10, 110, 10):
            text += f"2020-01-01 10:00:00,123 - INFO - [Epoch {epoch} Batch {i}/100] loss={1 / epoch:.4f}, lr=0.001\n"
        text += "2020-01-01 10:00:01,123 - INFO - Now evaluating on dev with [gpu(0), gpu(1)].\n"
        text += "".join(
            f"2020-01-01 10:00:02,123 - INFO - [Batch {i}/30] loss={epoch + i / 100:.4f}\n" for i in (10, 20, 30)
        )
    run = _run(text)
    assert points(run, "eval/loss") == [(100, 1.3), (200, 2.3), (300, 3.3), (400, 4.3)]
    assert set(run.series["train/loss"].value.tolist()) == {1.0, 0.5, 0.3333, 0.25}
    assert "evaluation_lines" in kinds(run)


def test_several_launches_in_one_text_are_several_runs(tmp_path: Path) -> None:
    one = "".join(f"step {i}/100 | loss {loss_at(i)}\n" for i in range(1, 101))
    runs = read_runs(write(tmp_path, "a.log", "starting\n" + one + "Traceback (most recent call last):\n" + one))
    assert [len(run.series["train/loss"]) for run in runs] == [100, 100]
    assert all("restart" in kinds(run) for run in runs)


def test_a_resume_replaces_the_steps_that_were_lost() -> None:
    lines = [f"step {i} loss {loss_at(i)}" for i in range(1, 101)]
    again = [f"step {i} loss {loss_at(i) + 1}" for i in range(81, 151)]
    run = _run("\n".join([*lines, "loading checkpoint", *again]))
    assert "rewind" in kinds(run)
    assert run.series["train/loss"].value[80] == loss_at(81) + 1


def test_what_ends_one_launch_and_what_begins_the_next_are_kept_apart() -> None:
    launch = "".join(f"step:{i}/90 train_loss:{loss_at(i)} time:{i}ms\n" for i in range(1, 81))
    text = "step:0/90 val_loss:9.0 time:0ms\n" + launch + "step:84/90 val_loss:2.5 time:84ms\n"
    source = Source("run.log", 2 * text.encode())
    first, second = reader_for(source).read_runs(source)
    assert points(first, "eval/loss") == points(second, "eval/loss") == [(0, 9.0), (84, 2.5)]
    assert len(first.series["train/loss"]) == len(second.series["train/loss"]) == 80


def test_a_line_without_counter_belongs_to_the_step_above_it() -> None:
    text = "".join(f"step: {i}|loss: {loss_at(i)}\n{'-' * 40}\n|latency={i}.5s |rate={i}.25\n" for i in range(30))
    run = _run(text)
    assert points(run, "latency") == [(i, i + 0.5) for i in range(30)]


def test_a_table_of_how_many_samples_there_are_is_no_metric() -> None:
    rule = "|:------:|:------|:------:|:------|\n"
    text = "|  category  | #instances |  category  | #instances |\n" + rule
    text += "|  person    | 4657       |  dog       | 8341       |\n"
    for i in range(1, 41):
        text += f"iter: {20 * i}  total_loss: {loss_at(i)}  lr: 0.01\n"
        if i % 4 == 0:
            text += f"| category | AP | category | AP |\n{rule}| person | {i}.5 | dog | {i}.25 |\n"
    run = _run(text)
    (person,) = [name for name in run.series if "person" in name]
    assert points(run, person) == [(20 * i, i + 0.5) for i in range(4, 41, 4)]


def test_a_dump_of_settings_is_no_metric() -> None:
    log = PRINTED["nanogpt"]().text
    text = "".join(
        f"Namespace(eval=False, lr={0.1 * k}, resume=None, warmup_epochs={5 * k})\n{log}" for k in range(1, 6)
    )
    source = Source("run.log", text.encode())
    for run in reader_for(source).read_runs(source):
        assert not [name for name in run.series if "lr" in name or "warmup" in name or "learning_rate" in name]


def test_the_first_process_speaks_for_all() -> None:
    text = "".join(f"[rank{r}]: step {i} loss {loss_at(i) + r}\n" for i in range(1, 50) for r in (0, 1, 2, 3))
    run = _run(text)
    assert points(run, "train/loss") == [(i, loss_at(i)) for i in range(1, 50)]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("nan", math.nan), ("NaN", math.nan), ("-nan", math.nan), ("inf", math.inf), ("-inf", -math.inf),
        ("Infinity", math.inf), ("1.#QNAN", math.nan), ("-1.#INF00", -math.inf), ("1,234.5", 1234.5),
        ("-3.5e-2", -0.035),
        ("+2.5", 2.5), (".5", 0.5), ("1e999", math.inf), ("5%", 5.0), ("tensor(2.5, device='cuda:0')", 2.5),
        ("'7.25'", 7.25), ("np.float64(1.5)", 1.5),
    ],
)  # fmt: skip
def test_numbers_are_read_however_they_are_written(written: str, value: float) -> None:
    text = "".join(f"step: {i} loss: {written if i == 25 else loss_at(i)} lr: 0.1\n" for i in range(50))
    run = _run(text)
    series = run.series["train/loss"]
    assert len(series) == 50
    assert series.value[25] == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_make_no_difference(ends: str) -> None:
    text = PRINTED["loop_by_hand"]().text.replace("\n", ends)
    assert points(_run(text), "train/loss") == PRINTED["loop_by_hand"]().train


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "gbk"])
def test_encodings_make_no_difference(encoding: str) -> None:
    text = "é start\n" if encoding != "gbk" else "训练开始\n"
    source = Source("a.log", (text + PRINTED["loop_by_hand"]().text).encode(encoding))
    (run,) = reader_for(source).read_runs(source)
    assert points(run, "train/loss") == PRINTED["loop_by_hand"]().train


def test_hostile_lines_do_no_harm() -> None:
    good = PRINTED["nanogpt"]().text.splitlines()
    bad = [
        "x" * 3_000_000,
        "1" * 2_000_000,
        "1," * 500_000,
        "loss: " * 100_000,
        "\x1b[31m" * 50_000 + "\x1b]0;title\x07",
        "step 1e999 loss 1e999",
        "=" * 200_000 + "|" * 200_000,
        "-1" * 200_000,
        "[" * 100_000 + "]" * 100_000,
        json.dumps({"a": list(range(50_000))}),
    ]
    for line in bad:
        run = _run("\n".join([*good[:100], line, *good[100:]]))
        assert len(run.series["train/loss"]) == 200, line[:20]
    for note in run.notes:
        assert note.message.isprintable()


def test_an_empty_text_has_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="empty"):
        read_runs(write(tmp_path, "a.log", "\n\n"), format="text")


def test_a_name_of_a_metric_with_escapes_reaches_no_terminal() -> None:
    run = _run(
        "".join(
            f"step {i} \x1b[31mloss\x1b[0m: {loss_at(i)} evil\x1b]0;a title\x07 metric that is long: 1.{i}\n"
            for i in range(40)
        )
    )
    assert all(name.isprintable() for name in run.series)


def test_a_perplexity_alone_makes_a_loss() -> None:
    text = "".join(f"iteration {i} | valid ppl: {math.exp(5 - i / 10):.6f}\n" for i in range(20))
    run = _run(text)
    assert run.series["eval/loss"].value == pytest.approx([5 - i / 10 for i in range(20)], abs=1e-6)
    assert "derived_loss" in kinds(run)


def test_metrics_of_networks_that_play_against_each_other_are_read() -> None:
    text = "================ Training Loss (Mon Feb 14 16:51:32 2022) ================\n"
    for epoch in range(1, 4):
        for i in range(100, 1100, 100):
            text += f"(epoch: {epoch}, iters: {i}, time: 0.480, data: 0.199) "
            text += f"D_A: 0.2{i // 100} G_A: -0.8{epoch} cycle_A: 2.123 \n"
    run = _run(text)
    assert len(run.series["G_A"]) == len(run.series["D_A"]) == 30
    assert run.series["G_A"].step[-1] == 3000
    assert run.series["G_A"].value[0] == -0.81


def test_what_two_processes_write_at_once_keeps_its_order() -> None:
    text = "".join(
        f"(epoch: {5 if i % 2 else 40}, iters: {(i * 8 + (4000 if i % 2 else 0)) % 9000}) G_GAN: {i}.5 G_L1: 2{i}.1\n"
        for i in range(400)
    )
    run = _run(text)
    assert run.x_axis == "row"
    assert run.series["G_GAN"].value.tolist() == [i + 0.5 for i in range(400)]


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
