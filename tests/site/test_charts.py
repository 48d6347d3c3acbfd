import numpy as np

from trainscope.site.charts import line_chart
from trainscope.site.curves import curve_of

from .test_curves import series


def test_a_second_curve_of_few_points_is_no_outlier_of_the_first():
    many = curve_of(series(1 + 0.1 * np.sin(np.arange(400)), name="train/loss"))
    few = curve_of(series(np.array([5.0, 4.0, 3.0, 2.5]), name="eval/loss"))
    chart = line_chart("c", many, overlay=few, height=280)
    limits = {p["name"]: p["value"] for p in chart.drawings[0].spec["params"]}
    assert limits["y1"] > 5
    assert chart.drawings[0].spec["datasets"]["caps"] == []


def test_what_lies_beyond_the_axis_is_marked_on_both_curves():
    many = curve_of(series(np.full(400, 2.0), name="train/loss"))
    outlier = np.full(400, 2.0)
    outlier[200] = 90.0
    chart = line_chart("c", many, overlay=curve_of(series(outlier, name="eval/loss")), height=280)
    assert [cap["t"] for cap in chart.drawings[0].spec["datasets"]["caps"]] == ["90"]
