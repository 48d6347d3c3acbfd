import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.site.svg import inlined, short_path

POINT = st.tuples(st.floats(-2000, 2000), st.floats(-2000, 2000))


def places(path):
    """Return the absolute points of a path, whatever its commands."""
    found, x, y, command, start = [], 0.0, 0.0, "", (0.0, 0.0)
    tokens = re.findall(r"[MLlHVZz]|-?\d*\.?\d+(?:e-?\d+)?", path)
    at = 0
    while at < len(tokens):
        if tokens[at].isalpha():
            command, at = tokens[at], at + 1
        if command in "Zz":
            x, y = start
            continue
        if command in "HV":
            value = float(tokens[at])
            at += 1
            x, y = (value, y) if command == "H" else (x, value)
        else:
            a, b = float(tokens[at]), float(tokens[at + 1])
            at += 2
            x, y = (x + a, y + b) if command == "l" else (a, b)
            if command == "M":
                start, command = (x, y), "L"
        found.append((x, y))
    return found


@given(st.lists(POINT, min_size=8, max_size=60))
def test_a_shortened_path_goes_through_the_same_points_to_a_tenth_of_a_pixel(points):
    path = "M" + "L".join(f"{x:.5f},{y:.5f}" for x, y in points) + "Z"
    for found, wanted in zip(places(short_path(path)), points, strict=True):
        assert found == pytest.approx(wanted, abs=0.051)


def test_a_curved_path_stays_as_it_is():
    path = "M0,0C1.2345,2.3456,3.4567,4.5678,5.6789,6.7890L10.123456,20.123456L30.5,40.5"
    assert short_path(path) == path


def test_ids_are_the_charts_own_and_its_name_is_escaped():
    drawn = (
        '<svg xmlns="x" width="10" height="5"><g clip-path="url(#clip7)" style="a:b"><path id="clip7" d=""/></g></svg>'
    )
    svg = inlined(drawn, "main-920", 'a "loss" <b>')
    assert 'id="main-920-0"' in svg
    assert "url(#main-920-0)" in svg
    assert 'aria-label="a &quot;loss&quot; &lt;b&gt;"' in svg
    assert "style" not in svg
