"""What text logs say in a way of their own: tables, headers, names beside the count, and what was tied wrongly."""

from __future__ import annotations

from pathlib import Path

from trainscope.readers.text_phrases import counted_phrase, second_side

from .logs import only, points, write
from .printed import PRINTED, loss_at


def test_a_table_under_a_rule_has_names_of_several_words(tmp_path: Path) -> None:
    run = only(write(tmp_path, "train.log", PRINTED["spacy_table"]().text))
    assert points(run, "LOSS NER") == [(i * 200, round(100 * loss_at(i), 2)) for i in range(12)]
    assert points(run, "LOSS TOK2VEC") == [(i * 200, round(loss_at(i), 2)) for i in range(12)]
    assert points(run, "epoch") == [(i * 200, i // 3) for i in range(12)]
    assert points(run, "SCORE") == [(i * 200, round(0.6 + i / 100, 2)) for i in range(12)]


def test_what_a_line_says_twice_is_of_the_training_and_of_the_evaluation(tmp_path: Path) -> None:
    run = only(write(tmp_path, "train.log", PRINTED["both_sides_on_a_line"]().text))
    assert points(run, "train/Token Acc") == [(i, round(0.1 + i / 1000, 3)) for i in range(12)]
    assert points(run, "eval/Token Acc") == [(i, round(i / 1000, 3)) for i in range(12)]


def test_a_warning_below_an_epoch_does_not_shift_the_epochs_after_it(tmp_path: Path) -> None:
    text = ""
    for epoch in range(1, 21):
        text += f"Epoch {epoch}/20\n"
        if epoch == 15:
            text += "2021-05-09 18:30:53: I cuda_driver.cc:789] failed to allocate 613.15M from device: out of memory\n"
        text += f"19/19 - 12s - loss: {loss_at(epoch)} - accuracy: 0.{epoch + 10}\n"
    run = only(write(tmp_path, "train.log", text))
    assert run.x_axis == "epoch"
    assert points(run, "train/loss") == [(epoch, loss_at(epoch)) for epoch in range(1, 21)]
    assert not any(note.kind == "duplicate_step" for note in run.notes)


def test_one_metric_a_line_keeps_every_value_of_every_metric(tmp_path: Path) -> None:
    text = ""
    for epoch in range(3):
        for batch in range(20, 180, 20):
            at = 180 * epoch + batch
            for name, value in (("Acc", 0.8), ("ObjectAcc", 0.5), ("SmoothL1", loss_at(at))):
                text += (
                    f"Epoch[{epoch}] Batch [{batch}]\tSpeed: 19.{at} samples/sec\tTrain-{name}={value + at / 1e4:.6f}\n"
                )
        for name in ("Acc", "ObjectAcc", "SmoothL1"):
            text += f"Epoch[{epoch}] Train-{name}=nan\n"
        text += f"Epoch[{epoch}] Time cost=585.{epoch}\nEpoch[{epoch}] Validation-SmoothL1=19.{epoch}\n"
    run = only(write(tmp_path, "train.log", text))
    steps = [160 * epoch + batch for epoch in range(3) for batch in range(20, 180, 20)]
    assert run.x_axis == "step"
    assert run.series["Train-SmoothL1"].step.tolist() == steps
    assert run.series["Train-ObjectAcc"].step.tolist() == steps
    assert run.series["epoch_mean/Train-SmoothL1"].step.tolist() == [160, 320, 480]
    assert points(run, "Validation-SmoothL1") == [(160, 19.0), (320, 19.1), (480, 19.2)]


def test_a_time_of_the_training_is_no_metric_of_it(tmp_path: Path) -> None:
    text = "".join(f"Epoch {i:02d} loss {loss_at(i)} | train {2 + i / 10:.1f}s\n" for i in range(1, 11))
    run = only(write(tmp_path, "train.log", text))
    assert points(run, "train time") == [(i, round(2 + i / 10, 1)) for i in range(1, 11)]
    assert "train/metric" not in run.series


def test_the_number_in_the_name_of_a_score_is_not_its_value(tmp_path: Path) -> None:
    run = only(write(tmp_path, "train.log", PRINTED["timm"]().text))
    assert points(run, "test/Acc@1") == [(150, 51.0), (350, 51.1), (550, 51.2)]
    assert points(run, "test/Acc@5") == [(150, 76.0), (350, 76.1), (550, 76.2)]
    assert "eval/accuracy" not in run.series


def test_two_nameless_counts_with_their_ends_are_the_epoch_and_its_batches(tmp_path: Path) -> None:
    at = [(epoch, batch) for epoch in range(3) for batch in range(0, 1583, 100)]
    text = "".join(
        f"[{e}/3][{b}/1583]\tLoss_D: {loss_at(e * 16 + b // 100)}\tD(G(z)): 0.{300 + b % 400} / 0.1\n" for e, b in at
    )
    run = only(write(tmp_path, "train.log", text))
    assert points(run, "Loss_D") == [(e * 1583 + b, loss_at(e * 16 + b // 100)) for e, b in at]


def test_percents_of_a_side_are_its_accuracy_and_not_its_loss(tmp_path: Path) -> None:
    text = ""
    for epoch in range(1, 4):
        for batch in range(0, 391, 50):
            text += f"Epoch: {epoch:03d}/003 | Batch {batch:03d}/391 | Cost: {loss_at(epoch * 8 + batch // 50):.4f}\n"
        text += f"Epoch: {epoch:03d}/003 | Train: 6{epoch}.1% | Validation 5{epoch}.2%\n"
    run = only(write(tmp_path, "train.log", text))
    assert points(run, "train/accuracy") == [(350, 61.1), (741, 62.1), (1132, 63.1)]
    assert points(run, "eval/accuracy") == [(350, 51.2), (741, 52.2), (1132, 53.2)]
    assert len(run.series["train/loss"]) == 24
    assert "eval/loss" not in run.series


def test_a_set_that_owns_a_metric_is_in_its_name(tmp_path: Path) -> None:
    text = "".join(
        f"[{i}]\tvalid_0's binary_logloss: {loss_at(i)}\tvalid_0's auc: 0.{i + 500}\n" for i in range(10, 60, 10)
    )
    run = only(write(tmp_path, "train.log", text))
    assert points(run, "valid_0 binary_logloss") == [(i, loss_at(i)) for i in range(10, 60, 10)]
    assert "train/loss" not in run.series


def test_a_unit_before_a_name_is_not_of_the_name(tmp_path: Path) -> None:
    text = "".join(
        f"Step: {i}. Time Elapsed: {i}.2 s Mean Reward: {i}.5. 128.5/s, 12{i}/s/gpu LR: 0.00{i}\n" for i in range(1, 9)
    )
    run = only(write(tmp_path, "train.log", text))
    assert points(run, "train/reward") == [(i, i + 0.5) for i in range(1, 9)]
    assert points(run, "learning_rate") == [(i, i / 1000) for i in range(1, 9)]


def test_episodes_count_where_nothing_else_does(tmp_path: Path) -> None:
    printed = "".join(f"Episode {i}\tAverage Score: {i / 8}\n" for i in range(10, 200, 10))
    assert points(only(write(tmp_path, "agent.log", printed)), "Average Score") == [
        (i, i / 8) for i in range(10, 200, 10)
    ]
    table = "episode,reward\n" + "".join(f"{i},{i * 1.5}\n" for i in range(1, 30))
    assert points(only(write(tmp_path, "agent.csv", table)), "train/reward") == [(i, i * 1.5) for i in range(1, 30)]
    baselines = "EpRewMean,TimestepsSoFar\n" + "".join(f"{i * 1.5},{i * 1024}\n" for i in range(1, 30))
    assert only(write(tmp_path, "progress.csv", baselines)).last_step == 29 * 1024


def test_tesseract_counts_to_no_end_three_times(tmp_path: Path) -> None:
    text = "".join(
        f"At iteration {i}/{2 * i}/{2 * i}, mean rms={loss_at(i):.3f}%, BCER train={4 * loss_at(i):.3f}%, skip=0%\n"
        for i in range(100, 1100, 100)
    )
    run = only(write(tmp_path, "train.log", text))
    assert run.series["BCER train"].value.tolist() == [round(4 * loss_at(i), 3) for i in range(100, 1100, 100)]


def test_the_phrase_before_a_count_ends_at_its_preposition() -> None:
    assert counted_phrase("Minibatch loss at step ") == "Minibatch loss"
    assert counted_phrase("The loss after the epoch ") == "loss"
    assert counted_phrase("warming up for step ") == "warming up"
    assert counted_phrase("Step ") == ""


def test_only_names_that_come_back_under_another_side_make_two_halves() -> None:
    parts = ["[train] loss=", ", acc=", ", [valid] loss=", ", acc=", ""]
    assert second_side(parts, ["loss", "acc", "loss", "acc"]) == ("eval", 2)
    assert second_side(["loss=", ", acc=", ", loss=", ""], ["loss", "acc", "loss"]) == ("", 0)
    assert second_side(["train_loss=", ", val_loss=", ""], ["train_loss", "val_loss"]) == ("", 0)


def test_a_cost_beside_parts_of_a_loss_is_time_and_no_step_is_lost_to_it(tmp_path: Path) -> None:
    text = ""
    for epoch in range(4):
        for batch in (99, 199):
            text += (
                f"[Epoch {epoch}][Batch {batch}], LR: 1.0E-03, ObjLoss={loss_at(10 * epoch + batch)}, ClassLoss=1.5\n"
            )
        text += f"[Epoch {epoch}] Training cost: 190.396, ObjLoss=17.3, ClassLoss=2.6\n"
    run = only(write(tmp_path, "train.log", text))
    assert run.series["learning_rate"].step.tolist() == [99, 199, 298, 398, 497, 597, 696, 796]
    assert "train/loss" not in run.series
