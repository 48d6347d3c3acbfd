"""Numbers taken out of text all at once are those that the pattern finds one after the other."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from trainscope.readers import text_lines, text_numbers, text_pieces, text_templates, text_values
from trainscope.readers.decode import decode
from trainscope.readers.text_lines import blocks_of, lines_of, without_colours
from trainscope.readers.text_numbers import Numbers, numbers_by_pattern, numbers_of
from trainscope.readers.text_pieces import distinct_lines, found_in
from trainscope.readers.text_values import is_clock

WORDS = """
1 23 .5 0.25 1e-05 1E+05 -3 +4.5 -.5 nan inf -inf 1:02:03 10:20:30,123 59:59 0:00:07 7,377 12,345,678 1,2,3 fp16
v1.2.3 _5 a_5 e5 5e 5e5 1e5e-5 1e-05,2e-05 1e-5e-5e-5 ..5 ,.5 :.5 :5 x.5 5. 5., 5,: - + . , : ( ) [ ] = / % | loss
" ' é 1.#IND -1.#INF 0x1f 1.2.3.4 1e400 1_000 e-05 --5 5-3 3-4-5 nan5 5nan .e5 1.e5 007 -0 00:00 10:75 1e5.2
"""
PIECES = WORDS.split()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the fast way for small texts too."""
    monkeypatch.setattr(text_numbers, "_FEW", 0)
    monkeypatch.setattr(text_pieces, "SMALL", 0)


def _soup(seed: int) -> bytes:
    pick = random.Random(seed)
    words = [pick.choice(PIECES) + pick.choice(("", " ", "\t")) for _ in range(1500)]
    return "".join(w + ("\n" if pick.random() < 0.1 else "") for w in words).encode()


def _same(a: Numbers, b: Numbers) -> None:
    assert a.masked == b.masked
    written = found_in(a.text, a.bounds)
    assert written == found_in(b.text, b.bounds)
    np.testing.assert_array_equal(a.values, [text_values._Worth()[w] for w in written])


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(40))
def test_numbers_of_any_text_are_those_of_the_pattern(seed: int) -> None:
    _same(numbers_of(_soup(seed)), numbers_by_pattern(_soup(seed)))


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_numbers_of_real_logs_are_those_of_the_pattern(shared: Path) -> None:
    files = [p for p in (shared / "corpus" / "real").rglob("*.*") if p.suffix in (".log", ".txt", ".out", ".csv")]
    assert len(files) > 50
    for file in files:
        for block in blocks_of(decode(file.read_bytes()).data):
            _same(numbers_of(block), numbers_by_pattern(block))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("written", "values", "rest"),
    [
        ("loss: 2.5, lr 1e-05", [2.5, 1e-05], "loss: \0, lr \0"),
        ("a=-.5 b=+3 c=--4", [-0.5, 3.0, -4.0], "a=\0 b=\0 c=-\0"),
        ("fp16 top5:0.83 v1.2", [0.83, 2.0], "fp16 top5:\0 v1.\0"),
        ("[1e-05,2e-05]", [1e-05, 2e-05], "[\0,\0]"),
        ("tps: 7,377 of 20,971,520", [7377.0, 20971520.0], "tps: \0 of \0"),
        ("at 10:00:01,123 for 1:02:03", [36001.123, 3723.0], "at \0 for \0"),
        ("torch 2.1.0, 1,2,3", [math.nan, math.nan], "torch \0, \0"),
        ("x-3 3-4 (2.3)", [3.0, 3.0, 4.0, 2.3], "x-\0 \0-\0 (\0)"),
        ("1e400 -0", [math.inf, -0.0], "\0 \0"),
    ],
)
def test_what_is_a_number_and_what_is_not(written: str, values: list[float], rest: str) -> None:
    numbers = numbers_of(written.encode())
    assert numbers.masked.decode() == rest
    np.testing.assert_array_equal(numbers.values, values)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("nan", math.nan),
        ("-NaN", math.nan),
        ("Infinity", math.inf),
        ("-inf", -math.inf),
        ("+inf", math.inf),
        ("1.#IND", math.nan),
        ("-1.#INF", -math.inf),
        ("-1.#QNAN0", math.nan),
    ],
)
def test_words_that_are_numbers_share_the_template_of_digits(written: str, value: float) -> None:
    lines = lines_of(
        f"step 1: loss 2.5 (best 2)\nstep 2: loss {written} (best 2)\nstep 3: loss -2.5 (best 2)\n".encode()
    )
    (template,) = lines.templates
    assert (template.text, template.count) == ("step \0: loss \0 (best \0)", 3)
    np.testing.assert_array_equal(lines.parts[0].values.reshape(3, 3)[:, 1], [2.5, value, -2.5])


def test_words_that_only_look_like_numbers_stay_words() -> None:
    lines = lines_of(b"nancy 1, info 2, 5nan, nan5, x.nan, banana\n")
    (template,) = lines.templates
    assert (template.text, template.sample) == ("nancy \0, info \0, \0nan, nan5, x.nan, banana", ("1", "2", "5"))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[31mstep: 5 \x1b[38;2;180;60;0mloss\x1b[0m\x1b[0m", "step: 5 loss"),
        ("\x1b[2K\x1b[1A\x1b[?25l 10%", " 10%"),
        ("a\x1b[31m\x1b]0;title\x07b\x1b[0m", "ab"),
        ("a\x1b[1 qb \x1b[31", "ab 31"),
        ("\x1b[31;", "31;"),
        ("x\x1b", "x\x1b"),
        ("x\x1b[", "x"),
        ("\x1b[3\x1b[31mx", "3x"),
        ("\x1bMx", "x"),
    ],
)
def test_colours_are_taken_off(written: str, shown: str) -> None:
    assert without_colours(written.encode()).decode() == shown


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_colours_are_those_of_the_pattern(seed: int, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not small:
        monkeypatch.setattr(text_pieces, "SMALL", 0)
    pick = random.Random(seed)
    text = "".join(
        pick.choice(["\x1b[", "\x1b", "3", ";", "m", "K", "[", " ", "loss", "\n"]) for _ in range(300)
    ).encode()
    assert without_colours(text) == text_lines._ANSI.sub(b"", text)
    plain = "".join(pick.choice(["\x1b[3m", "\x1b[0;1mx", "3", ";", "m", "loss", "\n"]) for _ in range(300)).encode()
    assert without_colours(plain) == text_lines._ANSI.sub(b"", plain)


@pytest.mark.parametrize("text", [b"", b"\n", b"a", b"a\nb\na", b"\n\na\n", b"b\n\nb\n\na"])
def test_the_different_lines_come_in_the_order_of_their_first_ones(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = text.split(b"\n")
    for size in (text_pieces.SMALL, 0):
        monkeypatch.setattr(text_pieces, "SMALL", size)
        different, which = distinct_lines(text)
        assert different == list(dict.fromkeys(lines))
        assert [different[i] for i in which.tolist()] == lines


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("10:20:30,123", 37230.123),
        ("10:20:30.123", 37230.123),
        ("59:59", 3599.0),
        ("1:02:03", 3723.0),
        ("23:59:59", 86399.0),
        ("1:2:3", 3723.0),
        ("7,377", 7377.0),
        ("12,345,678", 12345678.0),
        ("-1,234.5", -1234.5),
        ("1,23", math.nan),
        ("1.2.3", math.nan),
        ("5..6", math.nan),
        ("1::2", math.nan),
        ("1,,2", math.nan),
    ],
)
def test_clocks_and_thousands_are_worth_what_they_say(written: str, value: float) -> None:
    numbers = numbers_of(f"at {written} of 1.5, ".encode() * 3)
    np.testing.assert_array_equal(numbers.values, [value, 1.5] * 3)


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_where_a_text_is_cut_makes_no_difference(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(_soup(seed) for seed in range(5))
    whole = lines_of(text)
    monkeypatch.setattr("trainscope.readers.text_lines.BLOCK_BYTES", size)
    parts = lines_of(text)
    assert [t.text for t in parts.templates] == [t.text for t in whole.templates]
    assert [t.sample for t in parts.templates] == [t.sample for t in whole.templates]
    np.testing.assert_array_equal(parts.of, whole.of)
    np.testing.assert_array_equal(parts.parts[0].width, whole.parts[0].width)
    np.testing.assert_array_equal(parts.parts[0].values, whole.parts[0].values)


def test_lines_that_never_recur_are_forgotten_and_those_that_do_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_templates, "_MOST_TEMPLATES", 50)
    monkeypatch.setattr("trainscope.readers.text_lines.BLOCK_BYTES", 500)
    words = ["".join(random.Random(i).choices("abcdefgh", k=12)) for i in range(600)]
    lines = lines_of("".join(f"{word}\nstep {i} loss {i}.5\n" for i, word in enumerate(words)).encode())
    kept = {t.text: t.count for t in lines.templates}
    assert kept["step \0 loss \0"] == 600
    assert len(kept) < 100
    rows = np.flatnonzero(lines.of == next(i for i, t in enumerate(lines.templates) if t.text == "step \0 loss \0"))
    (part,) = lines.parts
    np.testing.assert_array_equal(part.values[part.start()[rows] + 1], np.arange(600) + 0.5)


@pytest.mark.parametrize(("written", "clock"), [("10:00:01", True), ("0:05", True), ("1.5", False), ("0:.", False)])
def test_clocks_are_told_from_numbers(written: str, clock: bool) -> None:
    assert is_clock(written) is clock
