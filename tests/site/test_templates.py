"""Templates and titles of one's own: they take the place of ours, and a wrong one is one line."""

import xml.etree.ElementTree as ElementTree

import pytest

from trainscope.core.errors import ConfigError

from .builds import made

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.slow


def test_a_title_of_any_bytes_is_text_and_an_empty_one_is_ours(logs, tmp_path):
    made(logs, tmp_path / "a", title="a\x01b\u202e\udc80<b>")
    assert "<b>" not in (tmp_path / "a" / "index.html").read_text()
    ElementTree.parse(tmp_path / "a" / "feed.xml")
    made(logs, tmp_path / "a", title=" ")
    assert "<h1>Training runs</h1>" in (tmp_path / "a" / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.html.j2", b"\n{{ page.nothing }}", "run.html.j2:2: .*nothing"),
        ("run.html.j2", b"{% if %}", "run.html.j2:1: "),
        ("all.html.j2", b"\n\n{{ 1/0 }}", "all.html.j2:3: division by zero"),
        ("all.html.j2", b"{{ site.title() }}", "all.html.j2:1: 'str' object is not callable"),
        ("all.html.j2", b'{% include "nope" %}', "all.html.j2:1: 'nope' not found"),
        ("all.html.j2", b'{% extends "all.html.j2" %}', "all.html.j2:1: maximum recursion"),
        ("all.html.j2", b'{{ "\\ud800" }}', "all.html.j2: .*surrogates not allowed"),
        ("feed.xml.j2", b"\xff\xfe", "feed.xml.j2: is no UTF-8 text"),
        ("site.css", b"\xff\xfe", "site.css: is no UTF-8 text"),
    ],
)
def test_a_wrong_template_is_one_line_that_says_where(logs, tmp_path, name, content, said):
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        made(logs, tmp_path / "site", templates=own)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "site").exists()


def test_a_template_of_ones_own_takes_the_place_of_ours(logs, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "all.html.j2").write_text("<p>mine: {{ index.count }}</p>")
    made(logs, tmp_path / "site", templates=own)
    assert (tmp_path / "site" / "all.html").read_text() == "<p>mine: 2</p>"
    (own / "all.html.j2").write_text("{{ index.nothing }}")
    with pytest.raises(ConfigError, match=r"--templates: all\.html\.j2"):
        made(logs, tmp_path / "site", templates=own)
    (own / "all.html.j2").rename(own / "al.html.j2")
    with pytest.raises(ConfigError, match="no page uses al"):
        made(logs, tmp_path / "site", templates=own)
