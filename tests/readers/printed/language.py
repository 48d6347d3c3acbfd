# ruff: noqa: E501 -- lines of logs are as long as they are
"""In the style of trainers of language models."""

from __future__ import annotations

import json
import math

from .form import Printed, loss_at


def hf_stdout() -> Printed:
    out = Printed(axis="row")
    for i in range(40):
        loss = loss_at(i)
        out.text += f"{{'loss': {loss}, 'grad_norm': {1 + i / 100}, 'learning_rate': {1e-5 * (40 - i)}, 'epoch': {0.05 * (i + 1):.2f}}}\n"
        out.train.append((i, loss))
    out.text += "{'train_runtime': 100.5, 'train_samples_per_second': 5.0, 'train_loss': 3.1, 'epoch': 2.0}\n"
    return out


def hf_stdout_with_bar() -> Printed:
    out = Printed()
    for i in range(1, 201):
        out.text += f"\r{i // 2:3d}%|{'#' * (i // 20)}{' ' * (10 - i // 20)}| {i}/200 [00:{i % 60:02d}<03:{i % 60:02d},  1.2{i % 10}it/s]"
        if i % 10 == 0:
            loss = loss_at(i)
            out.text += f"\n{{'loss': '{loss}', 'grad_norm': '{1 + i / 100}', 'learning_rate': '1e-05', 'epoch': '{i / 100}'}}\n"
            out.train.append((i, loss))
        if i % 50 == 0:
            out.text += f"\n{{'eval_loss': {loss_at(i) + 0.1:.4f}, 'eval_runtime': 3.2, 'epoch': {i / 100}}}\n"
            out.evaluation.append((i, round(loss_at(i) + 0.1, 4)))
    return out


def torchtitan() -> Printed:
    out = Printed()
    for i in range(1, 301, 10):
        loss = loss_at(i)
        out.text += (
            f"[rank0]:2025-02-03 10:{i % 60:02d}:01,123 - root - INFO - \x1b[31mstep: {i:2d}  \x1b[32mloss: {loss:7.4f}  "
            f"\x1b[38;2;180;60;0mgrad_norm:  {1.5 + i / 1000:.4f}  \x1b[33mmemory: 28.73GiB(91.62%)  \x1b[34mtps: {7000 + i:,}  \x1b[36mtflops: 53.86  \x1b[35mmfu: 17.26%\x1b[39m\n"
        )
        out.train.append((i, loss))
        if i % 100 == 1 and i > 1:
            out.text += f"[rank0]:2025-02-03 11:{i % 60:02d}:01,123 - root - INFO - \x1b[32mvalidate step: {i:2d}  loss: {loss + 0.2:7.4f}  memory: 20.73GiB(91.62%)  tps: 3,000\x1b[39m\n"
            out.evaluation.append((i, round(loss + 0.2, 4)))
    return out


def megatron() -> Printed:
    out = Printed()
    for i in range(10, 410, 10):
        loss = loss_at(i)
        out.text += (
            f" [2024-05-01 10:0{i % 10}:11] iteration {i:8d}/     500 | consumed samples: {i * 16:12d} | elapsed time per iteration (ms): {900 + i / 10:.1f} | "
            f"learning rate: {1e-4:.6E} | global batch size:    16 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {1 + i / 1000:.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        out.train.append((i, loss))
        if i % 100 == 0:
            out.text += "-" * 100 + "\n"
            out.text += (
                f" validation loss at iteration {i} | lm loss value: {loss + 0.1:.6E} | lm loss PPL: {math.exp(loss + 0.1):.6E} | \n"
                + "-" * 100
                + "\n"
            )
            out.evaluation.append((i, round(loss + 0.1, 6)))
    return out


def deepspeed_pipeline() -> Printed:
    out = Printed()
    for i in range(10, 410, 10):
        loss = loss_at(i)
        out.text += f"[2024-01-01 10:00:{i % 60:02d},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={i}, skipped=0, lr=[0.0001, 0.0001], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        out.text += f"steps: {i} loss: {loss:.4f} iter time (s): 1.{i % 10} samples/sec: 31.{i % 10}\n"
        out.train.append((i, loss))
    return out


def fairseq_json() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(20, 120, 20):
            step = (epoch - 1) * 100 + i
            loss = loss_at(step)
            row = {
                "epoch": epoch,
                "update": f"{step / 100:.3f}",
                "loss": f"{loss}",
                "nll_loss": f"{loss - 0.3:.4f}",
                "ppl": "9.1",
                "wps": "8100.2",
                "num_updates": str(step),
                "lr": "0.0005",
                "gnorm": "1.2",
                "train_wall": "12",
            }
            out.text += f"2022-03-01 10:00:{i % 60:02d} | INFO | train_inner | {json.dumps(row)}\n"
            out.train.append((step, loss))
        value = round(loss_at(epoch * 100) + 0.1, 4)
        row = {"epoch": epoch, "valid_loss": str(value), "valid_ppl": "8.1", "valid_num_updates": str(epoch * 100)}
        out.text += f"2022-03-01 10:10:00 | INFO | valid | {json.dumps(row)}\n"
        out.evaluation.append((epoch * 100, value))
    return out


def fairseq_old() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(20, 120, 20):
            step = (epoch - 1) * 100 + i
            loss = loss_at(step)
            out.text += f"| epoch {epoch:03d}:  {i:5d} / 100 loss={loss}, nll_loss={loss - 0.3:.4f}, ppl=9.10, wps=8100, ups=2, wpb=3500.000, bsz=120.000, num_updates={step}, lr=0.0005, gnorm=1.200, clip=0.000, wall=120, train_wall=110\n"
            out.train.append((step, loss))
        value = round(loss_at(epoch * 100) + 0.1, 4)
        out.text += f"| epoch {epoch:03d} | valid on 'valid' subset | loss {value} | nll_loss 3.1 | ppl 8.61 | num_updates {epoch * 100}\n"
        out.evaluation.append((epoch * 100, value))
    return out


def olmo() -> Printed:
    out = Printed()
    for i in range(1, 31):
        loss = loss_at(i)
        out.text += f"2024-03-01 10:00:{i % 60:02d}.123\tnode-1:0\tolmo.train:967\tINFO\t[step={i}/1000]\n    optim/total_grad_norm=1.{i:03d}\n    train/CrossEntropyLoss={loss:.3f}\n    train/Perplexity={math.exp(loss):,.1f}\n    throughput/total_tokens={i * 4194304:,}\n    throughput/device/tokens_per_second=7,{i:03d}\n"
        out.train.append((i, round(loss, 3)))
    return out


def nanogpt() -> Printed:
    out = Printed()
    for i in range(0, 200):
        loss = loss_at(i)
        if i % 50 == 0:
            out.text += f"step {i}: train loss {loss:.4f}, val loss {loss + 0.1:.4f}\n"
            out.evaluation.append((i, round(loss + 0.1, 4)))
        out.text += f"iter {i}: loss {loss:.4f}, time {100 + i % 7}.22ms, mfu 30.{i % 10}%\n"
        out.train.append((i, loss))
    return out


def build_nanogpt() -> Printed:
    out = Printed()
    for i in range(0, 200):
        loss = loss_at(i)
        if i % 50 == 0:
            out.text += f"{i} val {loss + 0.1:.4f}\n{i} hella 0.25{i % 10}\n"
            out.evaluation.append((i, round(loss + 0.1, 4)))
        out.text += f"{i} train {loss:.6f}\n"
        out.train.append((i, loss))
    return out


def llmc() -> Printed:
    out = Printed()
    for i in range(1, 201):
        loss = loss_at(i)
        z = "+nanz" if i < 20 else "-0.12z"
        out.text += f"step {i:4d}/19560 | loss {loss:.6f} ({z})| norm {3 / i:.4f} ({z})| lr 3.00e-04 | 402{i % 10}.11 ms | 32.{i % 10}% bf16 MFU | 1246{i % 90 + 10} tok/s\n"
        out.train.append((i, loss))
        if i % 50 == 0:
            out.text += f"val loss {loss + 0.1:.6f}\n"
            out.evaluation.append((i, round(loss + 0.1, 6)))
    return out


def swift() -> Printed:
    out = Printed()
    for i in range(1, 41):
        loss = loss_at(i)
        out.text += f"{{'loss': {loss}, 'token_acc': 0.7{i:02d}, 'grad_norm': 1.{i:02d}, 'learning_rate': 1e-05, 'memory(GiB)': 40.1, 'train_speed(iter/s)': 0.1, 'epoch': {i / 20}, 'global_step/max_steps': '{i}/40', 'percentage': '{i * 2.5}%', 'elapsed_time': '{i}m 57s', 'remaining_time': '49m 2s'}}\n"
        out.train.append((i, loss))
    return out
