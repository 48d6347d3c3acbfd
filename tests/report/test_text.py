from __future__ import annotations

import unicodedata

import pytest

from trainscope.report.text import figure, label, printable, shorten, well_formed


def test_nothing_hostile_stays_unseen(hostile: str):
    shown = printable(hostile)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert all(unicodedata.category(c) not in {"Cc", "Cs", "Zl", "Zp"} for c in shown)
    assert "\u202e" not in shown


@pytest.mark.parametrize("text", ["plain", "日本語の実験", "🧨 boom", "عربي", "é combining", "👩\u200d🔬"])
def test_text_that_people_write_stays_as_it_is(text):
    assert printable(text) == text


def test_escapes_are_spelled_out():
    assert printable("\x1b[31mred\x9b\u2028\U000e0001\n") == "\\x1b[31mred\\x9b\\u2028\\U000e0001\\n"


def test_a_lone_surrogate_is_replaced_and_a_pair_is_joined():
    assert well_formed("a\ud800b") == "a\ufffdb"
    assert well_formed("\ud83e\udde8") == "🧨"


def test_a_name_is_never_empty_and_never_endless():
    assert label("") == '""'
    assert label(" ") == '" "'
    assert len(label("x" * 5000)) == 120


def test_a_long_name_keeps_both_ends():
    assert shorten("layers.0.attention.weight", 12) == "layers.…ight"
    assert shorten("short", 12) == "short"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.4123, "2.412"), (3.0, "3"), (1e-9, "1e-09"), (99_000_000.0, "9.9e+07"), (None, "-"),
        ("nan", "nan"), (123456, "123456"), (0.1 + 0.2, "0.3"), (float("inf"), "inf"), (-0.0, "0"),
        (1e300, "1e+300"),
    ],
)  # fmt: skip
def test_figures_have_four_digits_at_most(value, text):
    assert figure(value) == text
