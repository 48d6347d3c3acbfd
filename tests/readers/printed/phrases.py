# ruff: noqa: E501 -- lines of logs are as long as they are
"""In the style of trainers that name things in their own way: beside the count, in tables, for two sides at once."""

from __future__ import annotations

from .form import Printed, loss_at


def spacy_table() -> Printed:
    """Names of several words above a rule, ``E`` for the epoch and ``#`` for the step; losses by component."""
    out = Printed()
    out.text += "\u2139 Pipeline: ['tok2vec', 'ner']\n\u2139 Initial learn rate: 0.001\nE    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE \n---  ------  ------------  --------  ------  ------\n"
    for i in range(12):
        out.text += f"{i // 3:3d}  {i * 200:6d}  {loss_at(i):12.2f}  {100 * loss_at(i):8.2f}  {60 + i:6.2f}  {0.6 + i / 100:6.2f}\n"
    return out


def marian() -> Printed:
    out = Printed()
    for i in range(1, 31):
        out.text += f"[2020-03-01 10:{i:02d}:00] Ep. {1 + i // 10} : Up. {i * 500} : Sen. {i % 10 * 21},407 : Cost {loss_at(i):.8f} : Time 71.34s : {700 + i}.25 words/s : L.r. {3e-4 / i:.4e}\n"
        out.train.append((i * 500, loss_at(i)))
        if i % 10 == 0:
            value = round(loss_at(i) + 0.2, 4)
            out.text += f"[2020-03-01 10:{i:02d}:30] [valid] Ep. {1 + i // 10} : Up. {i * 500} : cross-entropy : {value} : new best\n[2020-03-01 10:{i:02d}:40] [valid] Ep. {1 + i // 10} : Up. {i * 500} : bleu : 2{i}.5 : stalled 1 times (last best: 24.5)\n"
            out.evaluation.append((i * 500, value))
    return out


def espnet2() -> Printed:
    """The number of the epoch stands against its word, training and evaluation on one line."""
    out = Printed(axis="epoch")
    for epoch in range(1, 9):
        loss = round(loss_at(10 * epoch), 3)
        value = round(loss + 0.25, 3)
        out.text += f"[node7] 2021-02-03 0{epoch}:14:26,464 (trainer:243) INFO: {epoch}epoch results: [train] iter_time=0.164, loss_att={loss - 1:.3f}, loss={loss}, acc=0.4{epoch}, lr_0=2.080e-0{epoch}, time=1 minute and 4{epoch}.19 seconds, total_count={49 * epoch}, [valid] loss_att={value - 1:.3f}, loss={value}, acc=0.3{epoch}, cer=0.9{epoch}, time=50.{epoch} seconds, total_count={7 * epoch}, [att_plot] time=3.2 seconds, total_count=0\n"
        out.train.append((epoch, loss))
        out.evaluation.append((epoch, value))
    return out


def both_sides_on_a_line() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(12):
        loss = loss_at(5 * epoch)
        out.text += f"Epoch {epoch} | Train Loss: {loss} | Token Acc: 0.1{epoch:02d} | Val Loss: {loss + 0.3:.4f} | Token Acc: 0.0{epoch:02d}\n"
        out.train.append((epoch, loss))
        out.evaluation.append((epoch, round(loss + 0.3, 4)))
    return out


def deeplearning4j() -> Printed:
    out = Printed()
    for i in range(0, 3000, 100):
        out.text += f"10:{i // 100:02d}:16.402 [main] INFO  o.d.o.l.ScoreIterationListener - Score at iteration {i} is {loss_at(i)}\n"
        out.train.append((i, loss_at(i)))
    return out


def loss_at_step() -> Printed:
    out = Printed()
    for i in range(0, 1000, 50):
        out.text += f"Minibatch loss at step {i}: {loss_at(i)}\nMinibatch accuracy: {10 + i / 50:.1f}%\n"
        out.train.append((i, loss_at(i)))
    return out


def cost_after_epoch() -> Printed:
    out = Printed(axis="epoch")
    for i in range(0, 1000, 50):
        out.text += f"Cost after epoch {i}: {loss_at(i)}\n"
        out.train.append((i, loss_at(i)))
    return out


def epoch_that_closes() -> Printed:
    """What is counted stands below what it counts."""
    out = Printed(axis="epoch")
    for epoch in range(1, 13):
        out.text += f"loss: {loss_at(epoch)}\nFinished epoch {epoch}\n"
        out.train.append((epoch, loss_at(epoch)))
    return out


def rsl_rl() -> Printed:
    """A header counts the iterations, a footer behind a rule the steps of the environment."""
    out = Printed()
    for i in range(1, 21):
        reward = round(2 + 0.7 * i, 2)
        out.text += f"{'#' * 80}\n{'':24}Learning iteration {i}/20\n\n{'':8}Computation: {180000 + i} steps/s (collection: 0.36{i % 10}s, learning 0.13{i % 10}s)\n{'':8}Value function loss: {loss_at(i):.4f}\n{'':8}Surrogate loss: -0.00{i % 9 + 1}\n{'':8}Mean total reward: {reward}\n{'-' * 80}\n{'':8}Total timesteps: {i * 98304}\n{'':8}Iteration time: 0.5{i % 10}s\n\n"
        out.reward.append((i * 98304, reward))
    return out


def ml_agents() -> Printed:
    """Every number ends a sentence."""
    out = Printed()
    for i in range(1, 21):
        reward = round(-20 + 1.7 * i, 3)
        out.text += f"[INFO] Walker. Step: {i * 10000}. Time Elapsed: {237.958 * i:.3f} s. Mean Reward: {reward:.3f}. Std of Reward: 9.{800 - i}. Training.\n"
        out.reward.append((i * 10000, reward))
    return out


def xgboost() -> Printed:
    out = Printed()
    for i in range(40):
        out.text += f"[{i}]\ttrain-logloss:{loss_at(i):.5f}\teval-logloss:{loss_at(i) + 0.1:.5f}\n"
        out.train.append((i, loss_at(i)))
        out.evaluation.append((i, round(loss_at(i) + 0.1, 4)))
    return out


def timm() -> Printed:
    out = Printed()
    for epoch in range(3):
        for batch in range(0, 200, 50):
            loss = round(loss_at(epoch * 200 + batch), 3)
            out.text += f"Train: {epoch} [{batch:4d}/200 ({batch / 2:3.0f}%)]  Loss: {loss:.3f} ({loss + 0.1:.4f})  Time: 0.461s,  600.55/s  (0.461s,  555.20/s)  LR: 1.000e-03  Data: 0.012 (0.013)\n"
            out.train.append((epoch * 200 + batch, loss))
        value = round(loss_at(epoch * 200) + 0.4, 3)
        out.text += f"Test: [  48/48]  Time: 0.284 (0.3)  Loss: {value:.3f} ({value + 0.05:.4f})  Acc@1: 51.{epoch} ( 52.1)  Acc@5: 76.{epoch} (77.0)\n"
        out.evaluation.append((epoch * 200 + 150, value))
    return out


def bracketed_counts() -> Printed:
    """The epoch and the batch of it, neither named (the CIFAR-10 tutorial of PyTorch)."""
    out = Printed()
    for epoch in range(1, 4):
        for batch in range(2000, 14000, 2000):
            at = (epoch - 1) * 12000 + batch
            out.text += f"[{epoch}, {batch:5d}] loss: {loss_at(at // 500):.3f}\n"
            out.train.append((at, round(loss_at(at // 500), 3)))
    return out


def udacity() -> Printed:
    """What it says of a record names the value before."""
    out = Printed(axis="epoch")
    for epoch in range(1, 16):
        loss = loss_at(3 * epoch)
        out.text += f"Epoch: {epoch} \tTraining Loss: {loss:.6f} \tValidation Loss: {loss + 0.1:.6f}\nValidation loss decreased ({loss_at(3 * epoch - 3) + 0.1:.6f} --> {loss + 0.1:.6f}).  Saving model ...\n"
        out.train.append((epoch, loss))
        out.evaluation.append((epoch, round(loss + 0.1, 4)))
    return out


def early_stopping() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 16):
        loss = loss_at(3 * epoch)
        out.text += f"Epoch {epoch:3d}: train_loss={loss:.4f}, val_loss={loss + 0.1:.4f}, lr=1.00e-03, patience={epoch % 3}/10\n"
        out.train.append((epoch, loss))
        out.evaluation.append((epoch, round(loss + 0.1, 4)))
    return out


def vae_example() -> Printed:
    out = Printed(axis="epoch")
    for epoch in range(1, 12):
        out.text += f"====> Epoch: {epoch} Average loss: {loss_at(epoch):.4f}\n====> Test set loss: {loss_at(epoch) + 0.2:.4f}\n"
        out.train.append((epoch, loss_at(epoch)))
        out.evaluation.append((epoch, round(loss_at(epoch) + 0.2, 4)))
    return out


def litgpt() -> Printed:
    """The name of the loss is said once, of both sides."""
    out = Printed()
    for i in range(1, 41):
        value = f"{loss_at(i) + 0.1:.3f}" if i >= 10 else "n/a"
        out.text += f"Epoch 1 | iter {i * 4} step {i} | loss train: {loss_at(i):.3f}, val: {value} | iter time: 20{i % 10}.12 ms (step) remaining time: 0:00:{i:02d}\n"
        out.train.append((i, round(loss_at(i), 3)))
        if i >= 10:
            out.evaluation.append((i, round(loss_at(i) + 0.1, 3)))
    return out


def lightning_checkpoints() -> Printed:
    out = Printed()
    for epoch in range(12):
        value = round(loss_at(5 * epoch) + 0.1, 4)
        out.text += f"Epoch {epoch}, global step {100 * epoch + 100}: 'val_loss' reached {value:.5f} (best {value:.5f}), saving model to '/runs/epoch={epoch}-step={100 * epoch + 100}.ckpt' as top 1\n"
        out.evaluation.append((100 * epoch + 100, value))
    return out
