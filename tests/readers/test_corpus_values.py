"""Real public logs, step by step: every value is that of a reading which shares no code with ours.

Free text is read here by one regular expression a format, written from the lines themselves; tables and JSON lines by
the standard library.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from trainscope.core.metrics import canonical_names
from trainscope.readers import read_runs

pytestmark = pytest.mark.slow

Points: TypeAlias = dict[int, float]


@dataclass(frozen=True)
class Reading:
    """What lines of a file say, and where."""

    file: str
    line: str
    """Matched within each line; the groups ``step``, ``epoch`` and ``total`` place it, the others are values."""
    names: dict[str, str]
    """Series of each group."""
    step: Callable[[int, int], int] = lambda step, epoch: step
    """Step of a line by its own step and epoch, 0 where it says none."""


LLMC = r"step +(?P<step>\d+)/\d+ \| loss .*norm +(?P<norm>\S+) .*lr (?P<lr>\S+) \| (?P<ms>\S+) ms"
LLMC += r" \| (?P<mfu>\S+)% bf16 MFU \| (?P<tok>\d+) tok/s"
LLMC_LOSS = r"step +(?P<step>\d+)/\d+ \| loss +(?P<loss>\S+)"
LLMC_NAMES = {
    "norm": "train/grad_norm",
    "lr": "learning_rate",
    "ms": "train/step_time_ms",
    "mfu": "bf16 MFU",
    "tok": "train/tokens_per_second",
}
MODDED = r"^step:(?P<step>\d+)/\d+ train_loss:(?P<loss>\S+)"
MODDED_VAL = r"^step:(?P<step>\d+)/\d+ val_loss:(?P<loss>\S+)"
DETECTRON = r"iter: (?P<step>\d+)  total_loss: (?P<loss>\S+)  loss_cls: (?P<cls>\S+)  loss_box_reg: (?P<box>\S+)"
DETECTRON += r"  loss_rpn_cls: (?P<rpn>\S+)  loss_rpn_loc: (?P<loc>\S+)  time: (?P<time>\S+)  data_time: (?P<data>\S+)"
DETECTRON += r"  lr: (?P<lr>\S+)"
DETECTRON_NAMES = {
    "loss": "train/loss",
    "cls": "loss_cls",
    "box": "loss_box_reg",
    "rpn": "loss_rpn_cls",
    "loc": "loss_rpn_loc",
    "time": "time",
    "data": "data_time",
    "lr": "learning_rate",
}
CYCLEGAN = r"epoch: (?P<epoch>\d+), iters: (?P<step>\d+), time: \S+, data: \S+\) D_A: (?P<da>\S+) G_A: (?P<ga>\S+)"
CYCLEGAN += r" cycle_A: (?P<ca>\S+) idt_A: (?P<ia>\S+) D_B: (?P<db>\S+) G_B: (?P<gb>\S+)"

READINGS = (
    Reading("llmc_text/llmc_nan_from_step1.log", LLMC, LLMC_NAMES),
    Reading("llmc_text/llmc_nan_from_step1.log", LLMC_LOSS, {"loss": "train/loss"}),
    Reading("llmc_text/llmc_short_ok.log", LLMC, LLMC_NAMES),
    Reading("llmc_text/llmc_short_ok.log", LLMC_LOSS, {"loss": "train/loss"}),
    Reading("llmc_mainlog/llmc_main_124m.log", r"^s:(?P<step>\d+) tel:(?P<loss>\S+)", {"loss": "eval/loss"}),
    Reading(
        "llmc_mainlog/llmc_main_124m.log",
        r"^s:(?P<step>\d+) trl:(?P<loss>\S+) lr:(?P<lr>\S+) norm:(?P<norm>\S+)",
        {"loss": "train/loss", "lr": "learning_rate", "norm": "train/grad_norm"},
    ),
    Reading("llmc_mainlog/modded_2024_06_adamw.log", r"^s:(?P<step>\d+) tel:(?P<loss>\S+)", {"loss": "eval/loss"}),
    Reading("llmc_mainlog/modded_2024_06_adamw.log", r"^s:(?P<step>\d+) trl:(?P<loss>\S+)", {"loss": "train/loss"}),
    *(Reading(f"modded_nanogpt/{n}.txt", MODDED, {"loss": "train/loss"}) for n in ("mn_fp4", "mn_2024_10_muon")),
    *(Reading(f"modded_nanogpt/{n}.txt", MODDED_VAL, {"loss": "eval/loss"}) for n in ("mn_fp4", "mn_2024_10_soap")),
    Reading("paramgolf_text/pg_fp16embed.log", MODDED, {"loss": "train/loss"}),
    Reading("paramgolf_text/pg_fp16embed.log", MODDED_VAL, {"loss": "eval/loss"}),
    Reading("paramgolf_text/pg_mixedquant.log", MODDED, {"loss": "train/loss"}),
    Reading("paramgolf_text/pg_mixedquant.log", MODDED_VAL, {"loss": "eval/loss"}),
    Reading(
        "wandb_outputlog/nanogpt_druid_out.log",
        r"^iter (?P<step>\d+): loss (?P<loss>\S+), time (?P<time>[\d.]+)ms, mfu (?P<mfu>\S+)%",
        {"loss": "train/loss", "time": "time", "mfu": "mfu"},
    ),
    Reading(
        "wandb_outputlog/nanogpt_druid_out.log",
        r"^step (?P<step>\d+): train loss (?P<train>\S+), val loss (?P<loss>\S+)",
        {"train": "train loss", "loss": "eval/loss"},
    ),
    Reading(
        "torch7_log/wrn_torch7.txt",
        r'^json_stats: .*"train_time":(?P<tr>[\d.]+).*"epoch":(?P<epoch>\d+).*"lr":(?P<lr>[\d.e-]+).*"test_acc":'
        r'(?P<acc>[\d.]+).*"test_time":(?P<te>[\d.]+).*"loss":(?P<loss>[\d.e-]+)\}',
        {
            "tr": "train_time",
            "lr": "learning_rate",
            "acc": "eval/accuracy",
            "te": "test_time",
            "loss": "train/loss",
        },
        lambda step, epoch: epoch,
    ),
    Reading(
        "mxnet_log/yolo3_mobilenet_voc.log",
        r"^\[Epoch (?P<epoch>\d+)\]\[Batch (?P<step>\d+)\], LR: (?P<lr>\S+), Speed: (?P<speed>\S+) samples/sec, "
        r"ObjLoss=(?P<obj>[\d.]+), BoxCenterLoss=(?P<center>[\d.]+)",
        {
            "lr": "learning_rate",
            "speed": "train/samples_per_second",
            "obj": "ObjLoss",
            "center": "BoxCenterLoss",
        },
        lambda step, epoch: 199 * epoch + step,
    ),
    Reading(
        "cyclegan_losslog/cyclegan_samcw.txt",
        CYCLEGAN,
        {"da": "D_A", "ga": "G_A", "ca": "cycle_A", "ia": "idt_A", "db": "D_B", "gb": "G_B"},
        lambda step, epoch: 3702 * (epoch - 1) + step,
    ),
    Reading(
        "mxnet_log/cifar_rn110_mixup.log",
        r"\[Epoch (?P<epoch>\d+)\] train=(?P<train>\S+) val=(?P<val>\S+) loss=(?P<loss>\S+) time: (?P<time>\S+)",
        {"train": "train/metric", "val": "eval/metric", "loss": "train/loss", "time": "time"},
        lambda step, epoch: epoch,
    ),
    Reading(
        "mxnet_log/resnet50_v1_imagenet.log",
        r"Epoch\[(?P<epoch>\d+)\] Batch \[(?P<step>\d+)\]\tSpeed: (?P<speed>\S+) samples/sec\taccuracy=(?P<acc>\S+)"
        r"\tlr=(?P<lr>\S+)",
        {"speed": "train/samples_per_second", "acc": "train/accuracy", "lr": "learning_rate"},
        lambda step, epoch: 1249 * epoch + step,
    ),
    Reading(
        "mxnet_log/xlnet_cola.log",
        r"\[Epoch (?P<epoch>\d+) Batch (?P<step>\d+)/272\] loss=(?P<loss>[\d.]+), lr=(?P<lr>[\d.]+)",
        {"loss": "train/loss", "lr": "learning_rate"},
        lambda step, epoch: 272 * (epoch - 1) + step,
    ),
    Reading("text_generic/nyu_det_lr004_warmup.txt", DETECTRON, DETECTRON_NAMES),
    Reading("text_generic/nyu_det_lr04_balance.txt", DETECTRON, DETECTRON_NAMES),
    Reading(
        "text_generic/progdistill_diffusion.log",
        r"Step (?P<step>\d+) \| Loss: (?P<loss>\S+) \| LR: (?P<lr>\S+) \| Curriculum: (?P<cur>\d+)",
        {"loss": "train/loss", "lr": "learning_rate", "cur": "Curriculum"},
    ),
    Reading(
        "text_generic/prefdiffusion.log",
        r"Step (?P<step>\d+): loss=(?P<loss>\S+), diffusion=(?P<dif>\S+), preference=(?P<pref>\S+)",
        {"loss": "train/loss", "dif": "diffusion", "pref": "preference"},
    ),
    Reading(
        "deepspeed_log/dschat_sft_opt13.log",
        r"\[Rank 0\] step=(?P<step>\d+), skipped=(?P<skip>\d+), lr=\[(?P<lr>[^,]+),",
        {"skip": "skipped", "lr": "learning_rate"},
    ),
    Reading(
        "deepspeed_log/dschat_ppo.log",
        r"^epoch: 0\|step: (?P<step>\d+)\|ppo_ep: 1\|act_loss: (?P<act>[^|]+)\|cri_loss: (?P<cri>[^|]+)",
        {"act": "act_loss", "cri": "cri_loss"},
    ),
    Reading(
        "megatron_log/bs_meg_3d_dson.out",
        r"iteration +(?P<step>\d+)/ +\d+ \| consumed samples: +(?P<cs>\d+) \| elapsed time per iteration "
        r"\(ms\): (?P<ms>\S+)"
        r" \| learning rate: (?P<lr>\S+) \|.*\| lm-loss: (?P<loss>\S+) \|.*grad norm: (?P<norm>\S+) \|",
        {
            "cs": "consumed samples",
            "ms": "train/step_time_ms",
            "lr": "learning_rate",
            "loss": "train/loss",
            "norm": "train/grad_norm",
        },
    ),
)


def _number(text: str) -> float:
    return float(text.rstrip(",").replace(",", ""))


def _launches(rows: list[tuple[int, float]]) -> list[Points]:
    """Return the points of each launch, which begins where the step falls."""
    out: list[Points] = []
    last = None
    for step, value in rows:
        if last is None or step < last:
            out.append({})
        out[-1][step] = value
        last = step
    return out


def _same(run: Any, name: str, wanted: Points) -> None:
    series = run.series[name]
    assert series.step.tolist() == sorted(wanted), (run.name, name)
    np.testing.assert_array_equal(series.value, [wanted[s] for s in sorted(wanted)], f"{run.name} {name}")


@pytest.mark.parametrize("reading", READINGS, ids=lambda r: f"{Path(r.file).stem}-{next(iter(r.names))}")
def test_lines_of_text_have_the_values_that_one_expression_finds(reading: Reading, shared: Path) -> None:
    path = shared / "corpus" / "real" / reading.file
    rows: dict[str, list[tuple[int, float]]] = {name: [] for name in reading.names}
    for line in re.split(r"[\r\n]+", path.read_text(errors="replace")):
        if found := re.search(reading.line, line):
            said = found.groupdict()
            step = reading.step(int(said.get("step", 0)), int(said.get("epoch", 0)))
            for group, values in rows.items():
                values.append((step, _number(said[group])))
    runs = read_runs(path)
    for group, name in reading.names.items():
        assert rows[group]
        for run, wanted in zip([r for r in runs if name in r.series], _launches(rows[group]), strict=True):
            _same(run, name, wanted)


def _points_of_lines(text: str, step: str, value: str) -> Points:
    """Return the last value that follows each step, line by line."""
    out: Points = {}
    at = None
    for line in text.splitlines():
        if found := re.search(step, line):
            at = int(found[1])
        elif at is not None and (found := re.search(value, line)):
            out[at] = _number(found[1])
    return out


@pytest.mark.parametrize(
    ("file", "step", "value", "name"),
    [
        (file, r"\[step=(\d+)/", rf"^    {key}=(\S+)", name)
        for file in ("olmo_text/olmo1b_tied_emb10.log", "olmo_text/olmo1b_reproduce.log")
        for key, name in (
            ("train/CrossEntropyLoss", "train/loss"),
            ("train/Perplexity", "train/perplexity"),
            ("optim/total_grad_norm", "train/grad_norm"),
            ("throughput/device/tokens_per_second", "train/tokens_per_second"),
            ("throughput/total_tokens", "throughput/total_tokens"),
        )
    ]
    + [
        ("deepspeed_log/dschat_ppo.log", r"\|step: (\d+)\|", pattern, name)
        for pattern, name in (
            (r"^average reward score: (\S+)", "train/reward"),
            (r"E2E latency=([\d.]+)s", "E2E latency"),
            (r"AvgSamplesPerSec=([\d.]+)$", "AvgSamplesPerSec"),
        )
    ]
    + [
        ("text_generic/progdistill_diffusion.log", r"Step (\d+) \|", r"Validation loss: (\S+)", "eval/loss"),
    ],
)
def test_values_on_lines_of_their_own_have_the_step_above_them(
    file: str, step: str, value: str, name: str, shared: Path
) -> None:
    path = shared / "corpus" / "real" / file
    wanted = _points_of_lines(path.read_text(errors="replace"), step, value)
    (run,) = read_runs(path)
    _same(run, name, wanted)


def test_a_table_without_counter_has_its_rows_in_order(shared: Path) -> None:
    path = shared / "corpus" / "real" / "baselines_log" / "gail_ppo_table.txt"
    (run,) = read_runs(path)
    for said, name in (("loss", "train/loss"), ("kl", "kl"), ("mean 100 episode reward", "mean 100 episode reward")):
        rows = re.findall(rf"^\| {said} +\| (\S+) +\|$", path.read_text(), re.MULTILINE)
        assert len(rows) == 100
        _same(run, name, {i: float(row) for i, row in enumerate(rows)})


def test_running_means_have_the_last_value_of_each_epoch(shared: Path) -> None:
    path = shared / "corpus" / "real" / "mxnet_log" / "icnet_mhp_nan.log"
    line = r"Epoch (\d+) iteration (\d+)/\d+: training loss (\S+)"
    found = re.findall(line, path.read_text())
    wanted = {188 * int(epoch) + int(step): float(loss) for epoch, step, loss in found if step == "0180"}
    (run,) = read_runs(path)
    series = run.series["train/loss"]
    assert series.step.tolist() == [188 * epoch + 180 for epoch in range(120)]
    np.testing.assert_array_equal(series.value, list(wanted.values()))


# Where the step of a table is; "" where its rows are counted.
TABLES = {
    "lightning_csv": "step",
    "yolo_csv": "epoch",
    "keras_csv": "epoch",
    "csv_generic": "epoch",
    "baselines_csv": "step",
    "monitor_csv": "",
    "algoperf_csv": "global_step",
}


def test_every_cell_of_a_table_is_at_its_step(shared: Path) -> None:
    folder = shared / "corpus" / "real"
    checked = 0
    for file in sorted(p for kind in TABLES for p in (folder / kind).iterdir()):
        step = TABLES[file.parent.name]
        text = re.sub(r"^#.*\n", "", file.read_text())
        rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
        if step and step not in rows[0]:
            continue  # a table without a header
        columns: dict[str, Points] = {}
        for i, row in enumerate(rows):
            for key, cell in row.items():
                if key != step and (cell or "").strip():
                    columns.setdefault(key, {})[int(float(row[step])) if step else i] = float(cell)
        (run,) = read_runs(file)
        counts = {key: len(points) for key, points in columns.items()}
        for key, name in canonical_names(list(columns), counts).items():
            if name in run.series:
                series = run.series[name]
                have = dict(zip(series.step.tolist(), series.value.tolist(), strict=True))
                # A blank cell between numbers stands for NaN where NaN is all that comes after; `test_absence` has it.
                given = {s: v for s, v in have.items() if s in columns[key]}
                np.testing.assert_equal(given, columns[key], f"{file.name} {key}")
                assert all(np.isnan(v) for s, v in have.items() if s not in columns[key]), (file.name, key)
                checked += 1
    assert checked > 200


def _flat(row: dict[str, Any]) -> dict[str, float]:
    numbers = {k: v["mean"] if isinstance(v, dict) else v for k, v in row.items()}
    return {k: float(v) for k, v in numbers.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("llamafactory_jsonl", "current_steps"),
        ("jsonl_generic", "step"),
        ("stylegan_jsonl", "Progress/tick"),
        ("hf_trainer_state", "step"),
    ],
)
def test_every_number_of_json_is_at_its_step(kind: str, step: str, shared: Path) -> None:
    checked = 0
    for file in sorted((shared / "corpus" / "real" / kind).iterdir()):
        text = file.read_text()
        rows = json.loads(text)["log_history"] if kind == "hf_trainer_state" else map(json.loads, text.splitlines())
        columns: dict[str, Points] = {}
        for row in map(_flat, rows):
            if step not in row or "train_runtime" in row:
                continue
            for key, value in row.items():
                if key != step:
                    columns.setdefault(key, {})[int(row[step])] = value
        (run,) = read_runs(file)
        for key, name in canonical_names(list(columns), {k: len(p) for k, p in columns.items()}).items():
            if name in run.series:
                _same(run, name, columns[key])
                checked += 1
    assert checked >= 7
