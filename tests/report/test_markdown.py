from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from trainscope.report.markdown import code, escape, render
from trainscope.report.pipeline import Analysis

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TAG = re.compile(r"<[^>]*>")


def skeleton(markdown: str) -> list[str]:
    """The tags of the rendered page, without the text between them."""
    return TAG.findall(GITHUB.render(markdown))


def test_the_report_is_as_agreed(several: Analysis, golden):
    golden("report/several.md", render(several.document, several.runs))


def test_hostile_names_change_nothing_but_the_text(hostile: str, named):
    one, plain = named(hostile), named("plain")
    assert skeleton(render(one.document, one.runs)) == skeleton(render(plain.document, plain.runs))


def test_hostile_names_mention_and_link_nothing(hostile: str, named):
    one = named(hostile)
    # GitHub links these in the text after rendering, but never inside code.
    html = re.sub(r"<code>.*?</code>", "", GITHUB.render(render(one.document, one.runs)), flags=re.DOTALL)
    text = TAG.sub("", html)
    assert not re.search(r"@\w|#\d|GH-\d|://[^\u200b]|www\.", text, re.IGNORECASE)
    assert "<!--" not in html


def test_hostile_text_is_shown_as_it_is():
    text = "**bold** _it_ <b> | `x` $y$ [l](u) snake_case 1.5 - a"
    html = GITHUB.render(escape(text))
    assert html == f"<p>{text.replace('<', '&lt;').replace('>', '&gt;')}</p>\n"


@pytest.mark.parametrize("text", ["x", "a`b", "``", "`", " lead", "``` ````", "a|b"])
def test_code_spans_hold_any_backticks(text):
    html = GITHUB.render(code(text))
    assert html == f"<p><code>{text.replace('&', '&amp;')}</code></p>\n"


def test_ordinary_prose_stays_readable():
    text = "train/loss jumped to 9.12 at step 412, 14.2 MADs above its median (grad_norm was 0.5)."
    assert escape(text) == text
