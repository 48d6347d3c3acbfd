import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.site.rows import MAX_ROWS, NON_FINITE, NOTHING, cells_of, layer_maps, share_maps

from .runs import SPIKE, Layers, layers, rich


def run_with(points, names):
    loss = Series("train/loss", np.arange(400), np.ones(400))
    return Run("r", "r", "x", {"train/loss": loss}, layers=Layers(names, points))


def decoded(rows):
    codes = cells_of(rows).astype(float)
    share = (codes - 1) / 253
    return rows.low * (rows.high / rows.low) ** share if rows.log else rows.low + share * (rows.high - rows.low)


def test_a_cell_is_the_greatest_value_of_its_steps_to_a_part_of_its_scale():
    table = layers()
    (norms, _), left = layer_maps(rich(layer_table=table), [])
    assert left == 0
    truth = table.series("blocks.2.mlp.weight", "grad_l2_norm").value
    column = int(SPIKE / 400 * norms.columns)
    inside = truth[int(column * 400 / norms.columns) : int((column + 1) * 400 / norms.columns) + 1]
    step = (norms.high / norms.low) ** (1 / 253)
    # The palest colour stands for everything from the 99.8th percentile up.
    assert decoded(norms)[2, column] == pytest.approx(min(inside.max(), norms.high), rel=step)
    assert norms.peak[2] == (int(np.argmax(truth)), pytest.approx(truth.max()))


def test_nan_and_infinity_have_a_code_of_their_own_and_nothing_another():
    step = np.arange(200, 400)
    value = np.ones(200)
    value[50] = np.nan
    (rows,), _ = layer_maps(run_with({("a", "grad_l2_norm"): Series("grad_l2_norm", step, value)}, ("a",)), [])
    codes = cells_of(rows)[0]
    assert codes[0] == NOTHING
    assert np.count_nonzero(codes == NON_FINITE) == 1
    assert codes[-1] not in (NOTHING, NON_FINITE)


def test_a_statistic_that_is_taken_rarely_is_held_until_the_next_time():
    step = np.arange(0, 400, 50)
    (rows,), _ = layer_maps(run_with({("a", "act_kurtosis"): Series("act_kurtosis", step, step + 1.0)}, ("a",)), [])
    assert NOTHING not in cells_of(rows)


def test_of_many_layers_those_with_findings_are_kept():
    names = tuple(f"layer.{i}" for i in range(300))
    points = {(n, "grad_l2_norm"): Series("grad_l2_norm", np.arange(400), np.ones(400)) for n in names}
    (rows,), _ = layer_maps(run_with(points, names), [("grad_l2_norm", "layer.7")])
    assert "layer.7" in rows.rows
    assert len(rows.rows) <= MAX_ROWS
    assert rows.left_out == 300 - len(rows.rows)
    assert rows.rows == sorted(rows.rows, key=names.index)


def test_shares_are_shown_against_an_even_one():
    (rows,), _ = share_maps(rich())
    values = decoded(rows)
    assert values[3, 0] == pytest.approx(0, abs=0.05)
    assert values[3, -1] > 2
    assert values[0, -1] < -2
    assert rows.end[3] == pytest.approx(max(rows.end))
