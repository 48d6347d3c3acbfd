# ruff: noqa: E501 -- lines of logs are as long as they are
"""In the style of trainers of any model, of speech, of agents, and of loops written by hand."""

from __future__ import annotations

import json

from .form import Printed, loss_at


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
