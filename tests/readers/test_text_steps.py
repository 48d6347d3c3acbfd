"""The step of every record of a text log, from whatever its lines count."""

from __future__ import annotations

from .logs import points, run_of_text
from .printed import loss_at


def test_metrics_of_networks_that_play_against_each_other_are_read() -> None:
    text = "================ Training Loss (Mon Feb 14 16:51:32 2022) ================\n"
    for epoch in range(1, 4):
        for i in range(100, 1100, 100):
            text += f"(epoch: {epoch}, iters: {i}, time: 0.480, data: 0.199) "
            text += f"D_A: 0.2{i // 100} G_A: -0.8{epoch} cycle_A: 2.123 \n"
    run = run_of_text(text)
    assert len(run.series["G_A"]) == len(run.series["D_A"]) == 30
    assert run.series["G_A"].step[-1] == 3000
    assert run.series["G_A"].value[0] == -0.81


def test_what_two_processes_write_at_once_keeps_its_order() -> None:
    text = "".join(
        f"(epoch: {5 if i % 2 else 40}, iters: {(i * 8 + (4000 if i % 2 else 0)) % 9000}) G_GAN: {i}.5 G_L1: 2{i}.1\n"
        for i in range(400)
    )
    run = run_of_text(text)
    assert run.x_axis == "row"
    assert run.series["G_GAN"].value.tolist() == [i + 0.5 for i in range(400)]


def test_the_first_process_speaks_for_all() -> None:
    text = "".join(f"[rank{r}]: step {i} loss {loss_at(i) + r}\n" for i in range(1, 50) for r in (0, 1, 2, 3))
    run = run_of_text(text)
    assert points(run, "train/loss") == [(i, loss_at(i)) for i in range(1, 50)]


def test_a_line_without_counter_belongs_to_the_step_above_it() -> None:
    text = "".join(f"step: {i}|loss: {loss_at(i)}\n{'-' * 40}\n|latency={i}.5s |rate={i}.25\n" for i in range(30))
    run = run_of_text(text)
    assert points(run, "latency") == [(i, i + 0.5) for i in range(30)]
