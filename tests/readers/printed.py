# ruff: noqa: E501 -- lines of logs are as long as they are
"""What many trainers print, line by line, with a loss that is known: written in the style of each, none copied.

Each function returns a text, and the (step, value) points of ``train/loss`` and ``eval/loss`` that are in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field

Points = list[tuple[int, float]]


@dataclass
class Printed:
    """A text and what it says."""

    text: str = ""
    train: Points = field(default_factory=list)
    evaluation: Points = field(default_factory=list)
    axis: str = "step"
    reward: Points = field(default_factory=list)


def loss_at(step: int) -> float:
    """Return a loss that falls and trembles, to four decimals."""
    return round(2.0 + 6.0 * math.exp(-step / 60) + 0.05 * math.sin(7.3 * step), 4)


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


def keras_bars() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 11):
        out.text += f"Epoch {epoch}/10\n"
        total = 0.0
        for batch in range(1, 21):
            total += loss_at((epoch - 1) * 20 + batch)
            mean = total / batch
            bar = "=" * batch + ">" + "." * (20 - batch)
            out.text += f"\r{batch:2d}/20 [{bar}] - ETA: {20 - batch}s - loss: {mean:.4f} - accuracy: 0.{500 + batch}"
        value = loss_at(epoch * 20)
        out.text += f"\r20/20 [{'=' * 21}] - 3s 150ms/step - loss: {total / 20:.4f} - accuracy: 0.5{epoch:02d} - val_loss: {value:.4f} - val_accuracy: 0.6{epoch:02d}\n"
        out.train.append((epoch, round(total / 20, 4)))
        out.evaluation.append((epoch, value))
    return out


def keras3() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 11):
        value = loss_at(epoch * 20)
        out.text += f"Epoch {epoch}/10\n\x1b[1m20/20\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m 150ms/step - accuracy: 0.5{epoch:02d} - loss: {value:.4f} - val_accuracy: 0.6{epoch:02d} - val_loss: {value + 0.1:.4f}\n"
        out.train.append((epoch, value))
        out.evaluation.append((epoch, round(value + 0.1, 4)))
    return out


def lightning_bar() -> Printed:
    out = Printed()
    for epoch in range(3):
        for i in range(1, 51):
            step = epoch * 50 + i
            out.text += f"\rEpoch {epoch}: {2 * i:3d}%|{'█' * (i // 5)}{' ' * (10 - i // 5)}| {i}/50 [00:0{i % 10}<00:1{i % 10},  9.{i % 10}5it/s, v_num=3, train_loss={loss_at(step):.3f}]"
            out.train.append((step, round(loss_at(step), 3)))
        out.text += "\n"
    return out


def detectron2() -> Printed:
    out = Printed()
    for i in range(19, 819, 20):
        loss = loss_at(i)
        out.text += f"[05/18 10:12:{i % 60:02d}] d2.utils.events INFO:  eta: {'1 day, ' if i < 200 else ''}0:{i % 60:02d}:23  iter: {i}  total_loss: {loss:.4g}  loss_cls: 0.5  loss_box_reg: 0.3{i % 10}  time: 0.3{i % 10}  data_time: 0.01  lr: 0.0{i % 10}  max_mem: 4000M\n"
        out.train.append((i, float(f"{loss:.4g}")))
    return out


def mmdetection() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(50, 201, 50):
            step = (epoch - 1) * 210 + i
            loss = loss_at(step)
            out.text += f"2021-10-10 12:00:{i % 60:02d},123 - mmdet - INFO - Epoch [{epoch}][{i}/210]\tlr: 2.000e-02, eta: 1 day, 2:03:{i % 60:02d}, time: 0.9{epoch}, data_time: 0.05, memory: 3900, loss_rpn_cls: 0.1{i % 10}, loss_cls: 0.3, acc: 92.1, loss: {loss:.4f}\n"
            out.train.append((step, loss))
        out.text += f"2021-10-10 12:30:00,123 - mmdet - INFO - Epoch(val) [{epoch}][40]\tbbox_mAP: 0.3{epoch}, bbox_mAP_50: 0.5{epoch}\n"
    return out


def mmengine() -> Printed:
    out = Printed()
    for i in range(50, 1001, 50):
        loss = loss_at(i)
        out.text += f"10/10 12:00:{i % 60:02d} - mmengine - INFO - Iter(train) [{i:5d}/1000]  lr: 1.0e-03  eta: 0:10:{i % 60:02d}  time: 0.51{i % 10}  data_time: 0.01  memory: 4000  loss: {loss:.4f}  decode.loss_ce: 0.5\n"
        out.train.append((i, loss))
        if i % 200 == 0:
            out.text += f"10/10 12:30:00 - mmengine - INFO - Iter(val) [40/40]    aAcc: 80.{i % 100}  mIoU: 60.{i % 100}  data_time: 0.01  time: 0.2\n"
    return out


def paddle_seg() -> Printed:
    out = Printed()
    for i in range(10, 410, 10):
        loss = loss_at(i)
        out.text += f"2022-01-01 10:00:{i % 60:02d} [INFO]\t[TRAIN] epoch: {1 + i // 150}, iter: {i}/1000, loss: {loss:.4f}, lr: 0.00{i % 9 + 1}, batch_cost: 0.2{i % 10}, reader_cost: 0.001, ips: 20.{i % 10} samples/sec | ETA 00:10:{i % 60:02d}\n"
        out.train.append((i, loss))
        if i % 100 == 0:
            out.text += f"2022-01-01 10:30:00 [INFO]\t[EVAL] #Images: 500 mIoU: 0.5{i % 97} Acc: 0.9 Kappa: 0.8\n"
    return out


def basicsr() -> Printed:
    out = Printed()
    for i in range(100, 4001, 100):
        loss = loss_at(i // 50)
        out.text += f"2022-01-01 10:00:{i // 100 % 60:02d},123 INFO: [RRDB..][epoch:{i // 1000:3d}, iter:{149900 + i:8,}, lr:(2.000e-04,)] [eta: 3 days, 2:10:{i // 100 % 60:02d}, time (data): 0.50 (0.01)] l_pix: {loss:.4e} \n"
    return out


def sb3_table() -> Printed:
    out = Printed()
    for i in range(1, 41):
        rows = f"| rollout/                |              |\n|    ep_len_mean          | 2{i:02d}          |\n|    ep_rew_mean          | {10 + i * 1.5}         |\n| time/                   |              |\n|    fps                  | 90{i % 10}          |\n|    iterations           | {i}            |\n|    total_timesteps      | {i * 2048}         |\n| train/                  |              |\n|    approx_kl            | 0.00{i % 9 + 1}        |\n|    loss                 | {loss_at(i)}         |\n|    value_loss           | {loss_at(i) * 2:.3f}         |\n"
        out.text += "-" * 42 + "\n" + rows + "-" * 42 + "\n"
        out.reward.append((i * 2048, 10 + i * 1.5))
    return out


def speechbrain() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 16):
        loss = loss_at(epoch)
        out.text += f"epoch: {epoch}, lr: 1.00e-03 - train loss: {loss:.2e} - valid loss: {loss + 0.1:.2e}, valid PER: 2{epoch}.50\n"
        out.train.append((epoch, float(f"{loss:.2e}")))
        out.evaluation.append((epoch, float(f"{loss + 0.1:.2e}")))
    return out


def coqui() -> Printed:
    out = Printed()
    for epoch in range(3):
        out.text += f"\n\x1b[4m\x1b[1m > EPOCH: {epoch}/1000\x1b[0m\n --> output/run-1\n\n\x1b[1m > TRAINING (2022-01-01 10:00:00) \x1b[0m\n"
        for i in range(0, 100, 25):
            step = epoch * 100 + i
            loss = loss_at(step)
            out.text += f"\n\x1b[1m   --> STEP: {i}/100 -- GLOBAL_STEP: {step}\x1b[0m\n     | > loss: {loss:.5f}  ({loss + 0.01:.5f})\n     | > grad_norm: 1.2{i % 10}  (1.3)\n     | > current_lr: 0.0001 \n     | > step_time: 0.5{i % 10}  (0.51)\n     | > loader_time: 0.01  (0.01)\n\n"
            out.train.append((step, loss))
        value = round(loss_at(epoch * 100 + 99) + 0.1, 4)
        out.text += f"\n\x1b[1m > EVALUATION \x1b[0m\n\n  \x1b[1m--> EVAL PERFORMANCE\x1b[0m\n     | > avg_loader_time:\x1b[92m 0.01 \x1b[0m(-0.01)\n     | > avg_loss:\x1b[92m {value} \x1b[0m(-0.01)\n\n"
        out.evaluation.append((epoch * 100 + 75, value))
    return out


def caffe() -> Printed:
    out = Printed()
    for i in range(0, 2001, 100):
        loss = loss_at(i // 20)
        if i % 500 == 0:
            out.text += f"I0518 10:00:{i // 100 % 60:02d}.000001  1234 solver.cpp:330] Iteration {i}, Testing net (#0)\nI0518 10:00:{i // 100 % 60:02d}.100001  1234 solver.cpp:397]     Test net output #0: accuracy = 0.5{i // 100:02d}\nI0518 10:00:01.100002  1234 solver.cpp:397]     Test net output #1: loss = {loss + 0.1:.4f} (* 1 = {loss + 0.1:.4f} loss)\n"
            out.evaluation.append((i, round(loss + 0.1, 4)))
        out.text += f"I0518 10:01:{i // 100 % 60:02d}.000001  1234 solver.cpp:218] Iteration {i} (50.1 iter/s, 2.0s/100 iters), loss = {loss}\nI0518 10:01:01.000002  1234 solver.cpp:237]     Train net output #0: loss = {loss + 0.01:.4f} (* 1 = {loss + 0.01:.4f} loss)\nI0518 10:01:01.000003  1234 sgd_solver.cpp:105] Iteration {i}, lr = 0.01\n"
        out.train.append((i, loss))
    return out


def pytorch_mnist() -> Printed:
    out = Printed()
    for epoch in range(1, 4):
        for i in range(0, 60000, 6400):
            loss = loss_at(epoch * 10 + i // 6400)
            out.text += f"Train Epoch: {epoch} [{i}/60000 ({i / 600:.0f}%)]\tLoss: {loss:.6f}\n"
            out.train.append(((epoch - 1) * 60000 + i, loss))
        out.text += f"\nTest set: Average loss: {loss_at(epoch * 10):.4f}, Accuracy: 9{500 + epoch}/10000 (95%)\n\n"
        out.evaluation.append(((epoch - 1) * 60000 + 57600, loss_at(epoch * 10)))
    return out


def pytorch_imagenet() -> Printed:
    out = Printed()
    for epoch in range(3):
        for i in range(0, 100, 10):
            loss = loss_at(epoch * 100 + i)
            out.text += f"Epoch: [{epoch}][{i:3d}/100]\tTime  0.2{i % 7} ( 0.250)\tData  0.000 ( 0.020)\tLoss {loss:.4e} ({loss + 0.1:.4e})\tAcc@1  1{i % 9}.50 ( 10.12)\tAcc@5  3{i % 9}.50 ( 31.12)\n"
            out.train.append((epoch * 100 + i, loss))
        out.evaluation.append((epoch * 100 + 90, float(f"{loss_at(epoch * 100):.4e}")))
        out.text += f"Test: [ 0/10]\tTime  1.2 ( 1.2)\tLoss {loss_at(epoch * 100):.4e} (1.0)\tAcc@1  20.5 ( 20.5)\n * Acc@1 2{epoch}.500 Acc@5 4{epoch}.500\n"
    return out


def torchvision() -> Printed:
    out = Printed()
    for epoch in range(3):
        for i in range(0, 100, 10):
            loss = loss_at(epoch * 100 + i)
            out.text += f"Epoch: [{epoch}]  [ {i:2d}/100]  eta: 0:0{i % 6}:11  lr: 0.02  loss: {loss:.4f} ({loss + 0.2:.4f})  loss_classifier: 0.3 (0.4)  time: 0.2{i % 9}  data: 0.01  max mem: 3000\n"
            out.train.append((epoch * 100 + i, loss))
        out.text += f"Epoch: [{epoch}] Total time: 0:00:3{epoch} (0.3 s / it)\nTest:  [  0/50]  eta: 0:00:10  model_time: 0.2 (0.2)  time: 0.3  data: 0.1  max mem: 3000\n"
    return out


def ultralytics() -> Printed:
    out = Printed()
    for epoch in range(1, 11):
        out.text += "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        for done in (50, 100):
            out.text += f"\r     {epoch:2d}/10      2.5G     {loss_at(epoch):.3f}      {loss_at(epoch) + 1:.3f}      1.1{epoch:02d}         2{epoch % 10}        640: {done}%|{'█' * (done // 10)}| {done}/100 [00:1{epoch % 10}<00:00,  9.1it/s]"
        out.text += f"\n                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 4/4 [00:01<00:00,  3.1it/s]\n                   all        128        929      0.6{epoch:02d}      0.5{epoch:02d}      0.6{epoch:02d}      0.4{epoch:02d}\n"
    return out


def loop_by_hand() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 31):
        loss = loss_at(epoch)
        out.text += f"Epoch {epoch}/30 - train loss: {loss:.4f}, val loss: {loss + 0.1:.4f}, time: {3 + epoch % 3}.2s\n"
        out.train.append((epoch, loss))
        out.evaluation.append((epoch, round(loss + 0.1, 4)))
    return out


def arrows() -> Printed:
    out = Printed()
    for i in range(0, 3000, 100):
        loss = loss_at(i // 20)
        out.text += f">>> [{i}] loss -> {loss} | lr -> 0.001\n"
        out.train.append((i, loss))
    return out


def json_after_prefix() -> Printed:
    out = Printed()
    for i in range(1, 41):
        loss = loss_at(i)
        out.text += f"INFO:trainer:{json.dumps({'step': i, 'loss': loss, 'lr': 1e-4 * i, 'tokens': i * 1000})}\n"
        out.train.append((i, loss))
    return out


def swift() -> Printed:
    out = Printed()
    for i in range(1, 41):
        loss = loss_at(i)
        out.text += f"{{'loss': {loss}, 'token_acc': 0.7{i:02d}, 'grad_norm': 1.{i:02d}, 'learning_rate': 1e-05, 'memory(GiB)': 40.1, 'train_speed(iter/s)': 0.1, 'epoch': {i / 20}, 'global_step/max_steps': '{i}/40', 'percentage': '{i * 2.5}%', 'elapsed_time': '{i}m 57s', 'remaining_time': '49m 2s'}}\n"
        out.train.append((i, loss))
    return out


PRINTED: dict[str, Callable[[], Printed]] = {
    f.__name__: f
    for f in (
        hf_stdout, hf_stdout_with_bar, torchtitan, megatron, deepspeed_pipeline, fairseq_json, fairseq_old, olmo, nanogpt,
        build_nanogpt, llmc, keras_bars, keras3, lightning_bar, detectron2, mmdetection, mmengine, paddle_seg, basicsr,
        sb3_table, speechbrain, coqui, caffe, pytorch_mnist, pytorch_imagenet, torchvision, ultralytics, loop_by_hand,
        arrows, json_after_prefix, swift,
    )
}  # fmt: skip
