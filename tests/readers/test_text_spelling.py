"""Numbers as programs and countries write them: groups of digits, decimal commas, units that change on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import NoDataError
from trainscope.core.run import Run
from trainscope.readers import read_runs
from trainscope.readers.text_numbers import numbers_of

LOSSES = [round(2.345 - i / 80, 4) for i in range(160)]


def _read(tmp_path: Path, lines: list[str]) -> Run:
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines), encoding="utf-8")
    (run,) = read_runs(log)
    return run


@pytest.mark.parametrize("form", ["step {} loss: {:.4f}", "step {}, loss: {:.2f}", "step {} | loss={:.3f} | x"])
def test_a_comma_before_the_fraction_is_read_as_one(tmp_path: Path, form: str) -> None:
    lines = [form.format(i, value) for i, value in enumerate(LOSSES)]
    run = _read(tmp_path, [line.replace(".", ",") for line in lines])
    decimals = int(form.split(":.")[1][0])
    assert run.series["train/loss"].value.tolist() == [float(f"{value:.{decimals}f}") for value in LOSSES]


def test_points_between_the_digits_go_where_a_comma_is_before_the_fraction(tmp_path: Path) -> None:
    lines = [f"step {i} loss: {1000 + i}.5".replace(".", ",").replace(": 1", ": 1.") for i in range(40)]
    run = _read(tmp_path, lines)
    assert run.series["train/loss"].value.tolist() == [1000.5 + i for i in range(40)]


def test_thousands_keep_their_commas_beside_decimal_points(tmp_path: Path) -> None:
    run = _read(tmp_path, [f"step {1000 + i:,} loss: {value:.4f}" for i, value in enumerate(LOSSES)])
    assert run.series["train/loss"].step[:2].tolist() == [1000, 1001]
    assert run.series["train/loss"].value.tolist() == LOSSES


def test_digits_in_groups_are_one_number(tmp_path: Path) -> None:
    run = _read(tmp_path, [f"step {i * 100:_} loss: {value:.4f}" for i, value in enumerate(LOSSES)])
    assert run.series["train/loss"].step.tolist() == [i * 100 for i in range(len(LOSSES))]


def test_the_number_in_a_name_is_no_group_of_digits(tmp_path: Path) -> None:
    run = _read(tmp_path, [f"step {i} loss_100: {value:.4f} loss: {value:.4f}" for i, value in enumerate(LOSSES)])
    assert sorted(run.series) == ["loss_100", "train/loss"]


@pytest.mark.parametrize("odd", ["1.2.3", "1,2,3", "1.00,2.00,3"])
def test_what_only_looks_like_a_number_is_left_out_and_is_no_nan(tmp_path: Path, odd: str) -> None:
    lines = [f"step {i} loss: {value:.4f} grad_norm: {odd}" for i, value in enumerate(LOSSES)]
    run = _read(tmp_path, [f"starting {i} times" for i in range(2)] + lines)
    assert list(run.series) == ["train/loss"]
    assert [note.count for note in run.notes if note.kind == "bad_cell"] == [len(LOSSES)]


def test_a_nan_that_the_log_says_stays_one_beside_what_only_looks_like_a_number(tmp_path: Path) -> None:
    said = ["nan" if i % 2 else "1.2.3" for i in range(len(LOSSES))]
    run = _read(
        tmp_path,
        [f"step {i} loss: {value:.4f} grad_norm: {g}" for i, (value, g) in enumerate(zip(LOSSES, said, strict=True))],
    )
    norm = run.series["train/grad_norm"]
    assert norm.step.tolist() == list(range(1, len(LOSSES), 2))
    assert np.isnan(norm.value).all()


def test_a_text_whose_metrics_only_look_like_numbers_holds_none(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(f"step {i} loss: 1.2.{i}" for i in range(40)), encoding="utf-8")
    with pytest.raises(NoDataError, match="no metric"):
        read_runs(log)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("tok/s: {:.0f}", "tok/s: {:.3f}k"),
        ("throughput: {:.0f}B/s", "throughput: {:.3f}kB/s"),
        ("speed {:.0f} B/s", "speed {:.3f} kB/s"),
    ],
)
def test_a_rate_that_goes_on_in_thousands_does_not_fall(tmp_path: Path, small: str, large: str) -> None:
    rates = [900 + i for i in range(200)]
    said = [small.format(r) if r < 1000 else large.format(r / 1000) for r in rates]
    run = _read(tmp_path, [f"step {i} loss: {2 - i / 200:.3f} {s}" for i, s in enumerate(said)])
    (rate,) = [s for name, s in run.series.items() if name != "train/loss"]
    np.testing.assert_allclose(rate.value, rates)


def test_a_duration_in_ms_and_then_in_s_is_in_seconds(tmp_path: Path) -> None:
    times = [900 + i for i in range(200)]
    said = [f"{t}ms" if t < 1000 else f"{t / 1000:.3f}s" for t in times]
    run = _read(tmp_path, [f"step {i} loss: {2 - i / 200:.3f} step time: {s}" for i, s in enumerate(said)])
    np.testing.assert_allclose(run.series["train/step_time"].value, np.array(times) / 1000)


def test_a_unit_that_all_lines_share_is_kept(tmp_path: Path) -> None:
    run = _read(tmp_path, [f"step {i} loss: {2 - i / 200:.3f} tok/s: {i % 7}.5k" for i in range(100)])
    assert run.series["train/tokens_per_second"].value[:3].tolist() == [0.5, 1.5, 2.5]


def test_the_rank_may_be_any_number(tmp_path: Path) -> None:
    run = _read(tmp_path, [f"[rank{'1' * 5000}] step {i} loss: {value:.4f}" for i, value in enumerate(LOSSES)])
    assert run.series["train/loss"].value.tolist() == LOSSES


def test_a_number_that_begins_with_a_nought_has_no_thousands() -> None:
    few, many = b"0,253 1,253 ", 30_000
    for text in (few, few * many):
        values = numbers_of(text).values
        assert np.isnan(values[0])
        assert values[1] == 1253.0
