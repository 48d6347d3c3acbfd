"""What numbers are worth, however a program prints them."""

from __future__ import annotations

import math

import pytest

from .logs import run_of_text
from .printed import loss_at


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("nan", math.nan), ("NaN", math.nan), ("-nan", math.nan), ("inf", math.inf), ("-inf", -math.inf),
        ("Infinity", math.inf), ("1.#QNAN", math.nan), ("-1.#INF00", -math.inf), ("1,234.5", 1234.5),
        ("-3.5e-2", -0.035),
        ("+2.5", 2.5), (".5", 0.5), ("1e999", math.inf), ("5%", 5.0), ("tensor(2.5, device='cuda:0')", 2.5),
        ("'7.25'", 7.25), ("np.float64(1.5)", 1.5),
    ],
)  # fmt: skip
def test_numbers_are_read_however_they_are_written(written: str, value: float) -> None:
    text = "".join(f"step: {i} loss: {written if i == 25 else loss_at(i)} lr: 0.1\n" for i in range(50))
    run = run_of_text(text)
    series = run.series["train/loss"]
    assert len(series) == 50
    assert series.value[25] == pytest.approx(value, nan_ok=True)
