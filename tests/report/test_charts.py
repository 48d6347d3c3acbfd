from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.core.run import Run, Series
from trainscope.report.charts import Mark, draw, spread
from trainscope.report.panels import panels_for, primary
from trainscope.report.pipeline import Analysis


def chart_of(value, step=None, marks=(), **options):
    step = np.arange(len(value)) if step is None else np.asarray(step)
    options = {"width": 500.0, "height": 200.0} | options
    return draw([(Series("train/loss", step, np.asarray(value, dtype=float)), "loss")], marks, **options)


def points(path: str) -> list[tuple[float, float]]:
    """Follow SVG path data made of M, l and h0."""
    found: list[tuple[float, float]] = []
    for piece in path.rstrip("z").split("M")[1:]:
        head, _, rest = piece.partition("l")
        x, y = (float(v) for v in head.removesuffix("h0").split())
        found.append((x, y))
        moves = [float(v) for v in rest.split()]
        for dx, dy in zip(moves[::2], moves[1::2], strict=True):
            x, y = x + dx, y + dy
            found.append((x, y))
    return found


def test_each_point_is_drawn_where_its_values_put_it():
    chart = chart_of([0.0, 10.0, 5.0])
    (first, second, third) = points(chart.lines[0].path)
    assert first == pytest.approx((chart.left, chart.bottom), abs=0.1)
    assert second[0] == pytest.approx((chart.left + chart.right) / 2, abs=0.1)
    assert third[0] == pytest.approx(chart.right, abs=0.1)
    assert second[1] < third[1] < first[1]
    assert third[1] == pytest.approx((first[1] + second[1]) / 2, abs=0.1)


def test_everything_is_drawn_inside_the_plot():
    rng = np.random.default_rng(1)
    value = rng.standard_t(1.5, 5000)
    chart = chart_of(value)
    for path in (chart.lines[0].path, chart.lines[0].band):
        for x, y in points(path):
            assert chart.left - 0.2 <= x <= chart.right + 0.2
            assert chart.top - 0.2 <= y <= chart.bottom + 0.2


def test_a_value_beyond_the_axis_gets_a_triangle_with_its_number():
    value = np.full(300, 2.0)
    value[100] = 59.7
    (outlier,) = chart_of(value).outliers
    assert outlier.text == "59.7"
    assert outlier.title == "59.7 at step 100"
    assert outlier.up


def test_no_value_beyond_the_axis_is_without_a_triangle():
    rng = np.random.default_rng(0)
    value = np.abs(rng.standard_t(1.2, 3000))
    chart = chart_of(value, allow_log=False)
    marked = np.array([o.x for o in chart.outliers])
    for step in np.argsort(value)[::-1][:5].tolist():
        x = chart.left + step / 2999 * (chart.right - chart.left)
        assert np.abs(marked - x).min() < 8


def test_labels_of_outliers_do_not_touch():
    value = np.full(3000, 2.0)
    value[::150] = 50.0
    labelled = sorted(o.x for o in chart_of(value).outliers if o.text)
    assert len(labelled) > 3
    assert min(np.diff(labelled)) >= 60


def test_values_far_below_are_marked_at_the_lower_edge():
    value = np.random.default_rng(0).normal(size=500)
    value[7] = -300
    assert [(o.up, o.text) for o in chart_of(value).outliers] == [(False, "-300")]


def test_a_value_that_is_no_number_breaks_the_line_and_is_in_the_rug():
    value = np.linspace(3, 2, 50)
    value[20:23] = np.nan
    chart = chart_of(value)
    assert chart.lines[0].path.count("M") == 2
    assert len(chart.rug) == 3
    assert "3 NaN or infinite" in chart.hints
    x = chart.left + 21 / 49 * (chart.right - chart.left)
    assert chart.rug[1] == pytest.approx(x, abs=1)


def test_a_dense_line_breaks_too():
    value = np.linspace(3, 2, 100_000)
    value[50_000:60_000] = np.nan
    chart = chart_of(value)
    assert chart.lines[0].path.count("M") == 2


def test_a_series_of_nothing_finite_is_all_rug():
    chart = chart_of([np.nan, np.inf, np.nan])
    assert points(chart.lines[0].path) == []
    assert len(chart.rug) == 3
    assert "All values are NaN or infinite" in chart.alt


def test_a_single_point_is_drawn_in_the_middle():
    chart = chart_of([2.0], step=[7])
    ((x, _),) = points(chart.lines[0].path)
    assert x == pytest.approx((chart.left + chart.right) / 2, abs=0.1)


def test_a_million_points_stay_small():
    rng = np.random.default_rng(0)
    value = 2 + rng.normal(0, 0.1, 1_000_000)
    value[123_456] = 500.0
    chart = chart_of(value, width=1040.0)
    assert len(chart.lines[0].path) + len(chart.lines[0].band) < 40_000
    assert [o.text for o in chart.outliers] == ["500"]
    assert chart.lines[0].band


def test_the_text_alternative_has_the_numbers():
    value = np.linspace(9, 2, 100)
    mark = Mark(40, 44, "error", "1", "finding 1, error, Loss spike, steps 40 to 44")
    value[42] = 11.5
    alt = chart_of(value, marks=[mark]).alt
    for fact in ("steps 0 to 99", "100 values", "Starts at 9", "ends at 2", "11.5 at step 42", mark.title):
        assert fact in alt


def test_a_finding_of_one_step_is_still_visible():
    (shade,) = chart_of(np.ones(1000), marks=[Mark(500, 500, "error", "1", "x")]).shades
    assert shade.width >= 3


def test_numbers_of_neighbouring_findings_do_not_overlap():
    marks = [Mark(500 + i, 502 + i, "error", str(i), "x") for i in range(6)]
    chart = chart_of(np.ones(1000), marks=marks)
    badges = sorted(s.badge_x for s in chart.shades)
    assert min(np.diff(badges)) >= 17.9


@given(st.lists(st.floats(0, 500), min_size=1, max_size=80).map(sorted))
def test_places_are_spread_in_order_and_within_bounds(wanted):
    places = spread(wanted, 10, 490, 18)
    gap = min(18, 480 / max(len(wanted) - 1, 1))
    assert places[0] >= 10 - 1e-6
    assert places[-1] <= 490
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(places))


def test_hundreds_of_findings_are_drawn():
    marks = [Mark(i, i + 1, "error", str(i), "x") for i in range(300)]
    assert len(chart_of(np.ones(1000), marks=marks).shades) == 300


def test_a_window_shows_only_its_steps():
    value = np.linspace(3, 2, 100)
    chart = chart_of(value, window=(40, 60), marks=[Mark(1, 2, "error", "", "x")])
    assert len(points(chart.lines[0].path)) == 21
    assert chart.shades == ()
    assert "steps 40 to 60" in chart.alt


@pytest.mark.parametrize("value", [[1e308, -1e308, 0.0], [5e-324, 1e-323, 0.0], [0.0, 0.0], [1e15, 1e15 + 1]])
def test_extreme_values_give_finite_pixels(value):
    chart = chart_of(value)
    assert not re.search("nan|inf", chart.lines[0].path)


def test_the_main_chart_of_a_run_is_its_training_loss_with_every_finding(analysis: Analysis):
    (entry,) = analysis.document.runs
    panels = panels_for(entry, analysis.runs[entry.id])
    assert panels.main is not None
    assert panels.main.title == "train/loss"
    assert [line.name for line in panels.main.wide.lines] == ["train/loss", "eval/loss"]
    assert [s.mark.badge for s in panels.main.wide.shades] == ["1", "2"]


def test_each_finding_with_steps_gets_a_close_look(analysis: Analysis):
    (entry,) = analysis.document.runs
    panels = panels_for(entry, analysis.runs[entry.id])
    spike, nan, whole = panels.findings
    assert spike is not None
    assert "steps 158 to 244" in spike.wide.alt or "Marked: finding 1" in spike.wide.alt
    assert nan is not None
    assert whole is None


def test_metrics_with_findings_come_first_and_the_rest_is_counted(analysis: Analysis):
    (entry,) = analysis.document.runs
    run = analysis.runs[entry.id]
    step = np.arange(10)
    many = {f"m{i}": Series(f"m{i}", step, step * 1.0) for i in range(20)}
    panels = panels_for(entry, Run(run.name, run.source, run.format, {**run.series, **many}))
    assert panels.small[0].title == "eval/loss"
    assert len(panels.small) + panels.left_out == 23


@pytest.mark.parametrize(
    ("name", "unit"),
    [("train/step_time", "s"), ("batch/token_entropy", "nat"), ("learning_rate", None), ("mine", None)],
)
def test_a_unit_stands_beside_the_name_of_what_has_one(analysis: Analysis, name: str, unit: str | None):
    (entry,) = analysis.document.runs
    run, step = analysis.runs[entry.id], np.arange(10)
    panels = panels_for(
        entry, Run(run.name, run.source, run.format, {**run.series, name: Series(name, step, step + 1.0)})
    )
    (panel,) = [p for p in panels.small if p.title == name]
    assert panel.wide.hints == panel.narrow.hints == (() if unit is None else (unit,))


def test_a_number_that_never_changes_takes_no_room_from_one_that_does(analysis: Analysis):
    (entry,) = analysis.document.runs
    run, step = analysis.runs[entry.id], np.arange(10)
    flat = {f"flat{i}": Series(f"flat{i}", step, np.full(10, 4.0)) for i in range(20)}
    rate = {"learning_rate": Series("learning_rate", step, np.full(10, 1e-3))}  # that it never changed is news
    broken = {"broken": Series("broken", step, np.full(10, np.nan))}
    moved = {"moved": Series("moved", step, step * 1.0)}
    panels = panels_for(entry, Run(run.name, run.source, run.format, {**run.series, **flat, **broken, **moved, **rate}))
    titles = [p.title for p in panels.small]
    assert {"learning_rate", "moved", "broken"} <= set(titles)
    assert titles.index("learning_rate") < titles.index("broken") < titles.index("moved") < titles.index("flat0")
    assert len(panels.small) + panels.left_out == 25


def test_without_a_training_loss_the_nearest_metric_leads():
    step = np.arange(3)

    def run(*names: str) -> Run:
        return Run("r", "s", "csv", {n: Series(n, step, step * 1.0) for n in names})

    leader = primary(run("train/grad_norm", "kl_loss"))
    assert leader is not None
    assert leader.name == "kl_loss"
    leader = primary(run("train/grad_norm"))
    assert leader is not None
    assert leader.name == "train/grad_norm"
    assert primary(Run("r", "s", "csv", {})) is None
