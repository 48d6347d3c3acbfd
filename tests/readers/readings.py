"""What lines of real public logs say: one regular expression a format, written from the lines themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

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


def assert_same(run: Any, name: str, wanted: Points) -> None:
    series = run.series[name]
    assert series.step.tolist() == sorted(wanted), (run.name, name)
    np.testing.assert_array_equal(series.value, [wanted[s] for s in sorted(wanted)], f"{run.name} {name}")
