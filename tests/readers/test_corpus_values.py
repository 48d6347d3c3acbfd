"""Real public logs of free text, step by step: every value is that of a reading which shares no code with ours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from trainscope.readers import read_runs

from .readings import READINGS, Points, Reading, assert_same

pytestmark = pytest.mark.slow


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
            assert_same(run, name, wanted)


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
    assert_same(run, name, wanted)


def test_a_table_without_counter_has_its_rows_in_order(shared: Path) -> None:
    path = shared / "corpus" / "real" / "baselines_log" / "gail_ppo_table.txt"
    (run,) = read_runs(path)
    for said, name in (("loss", "train/loss"), ("kl", "kl"), ("mean 100 episode reward", "mean 100 episode reward")):
        rows = re.findall(rf"^\| {said} +\| (\S+) +\|$", path.read_text(), re.MULTILINE)
        assert len(rows) == 100
        assert_same(run, name, {i: float(row) for i, row in enumerate(rows)})


def test_running_means_have_the_last_value_of_each_epoch(shared: Path) -> None:
    path = shared / "corpus" / "real" / "mxnet_log" / "icnet_mhp_nan.log"
    line = r"Epoch (\d+) iteration (\d+)/\d+: training loss (\S+)"
    found = re.findall(line, path.read_text())
    wanted = {188 * int(epoch) + int(step): float(loss) for epoch, step, loss in found if step == "0180"}
    (run,) = read_runs(path)
    series = run.series["train/loss"]
    assert series.step.tolist() == [188 * epoch + 180 for epoch in range(120)]
    np.testing.assert_array_equal(series.value, list(wanted.values()))
