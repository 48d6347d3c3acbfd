import pytest

from trainscope.site.charts import line_chart
from trainscope.site.curves import curve_of

from .test_curves import series

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.slow


def job():
    return {"kind": "svg", "spec": line_chart("c", curve_of(series([3.0, 2.0, 1.0])), height=120).drawings[0].spec}


def test_a_chart_that_kills_its_process_costs_that_chart_alone():
    from trainscope.site.drawing import Drawer

    fatal = job()
    # vega/vl-convert#220: this label aborts the process.
    fatal["spec"] = {**fatal["spec"], "title": "nul\0byte"}
    with Drawer(1) as drawer:
        answers = drawer.draw([job(), fatal, {"kind": "svg", "spec": {"mark": 7}}, job()])
    assert [answer is None for answer in answers] == [False, True, True, False]
    assert drawer.failed == 2
    assert answers[0] == answers[3]


def test_nothing_is_fetched_for_a_chart():
    from trainscope.site.drawing import Drawer

    spec = {"data": {"url": "http://127.0.0.1:9/data.json"}, "mark": "point", "encoding": {"x": {"field": "a"}}}
    with Drawer(1) as drawer:
        assert drawer.draw([{"kind": "svg", "spec": spec}]) == [None]
