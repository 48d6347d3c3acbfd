"""Which lines of a text hold metrics, and which only look like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainscope.core.errors import NoReaderError
from trainscope.readers import read_runs

from .logs import points, run_of_text, runs_of_text, write
from .printed import PRINTED


def test_source_code_and_settings_above_the_metrics_are_no_metrics() -> None:
    code = "\n".join(
        f"    loss = criterion(x, {i})  # step {i}: loss {i}.5\n    lr={i}.01,\n    self.step = {i}" for i in range(300)
    )
    settings = "\n".join(f"{word}: 0.{i}" for i, word in enumerate(("lr", "loss_weight", "warmup", "betas")))
    run = run_of_text(f"{code}\n{settings}\n{PRINTED['nanogpt']().text}")
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


def test_a_dump_of_settings_is_no_metric() -> None:
    log = PRINTED["nanogpt"]().text
    text = "".join(
        f"Namespace(eval=False, lr={0.1 * k}, resume=None, warmup_epochs={5 * k})\n{log}" for k in range(1, 6)
    )
    for run in runs_of_text(text):
        assert not [name for name in run.series if "lr" in name or "warmup" in name or "learning_rate" in name]


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
        run = run_of_text("\n".join([*good[:100], line, *good[100:]]))
        assert len(run.series["train/loss"]) == 200, line[:20]
    for note in run.notes:
        assert note.message.isprintable()
