"""What a drawn chart needs before it may stand inside a page: its own ids, a name, and fewer bytes."""

from __future__ import annotations

import re
from html import escape

_ROLES = re.compile(
    r' (?:aria-[a-z]+|role|class|style|font-family|pointer-events|stroke-miterlimit|version|xmlns(?::xlink)?)="[^"]*"'
)
_SHAPES = re.compile(
    r'<path(?: aria-hidden="true")? d="M0,0h[\d.]+v[\d.]+h-[\d.]+Z"/>|<path(?: d="")? display="none"/>'
)
_EMPTY = re.compile(r"<g(?: transform=\"translate\(0,0\)\")?></g>")
_BARE = re.compile(r"<g>((?:(?!</?g\b).)*)</g>", re.DOTALL)
_NUMBERS = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_PATH = re.compile(r' d="([^"]*)"')
_TRANSFORM = re.compile(r' transform="([^"]*)"')
_TOKEN = re.compile(r"([MLHVZ])|(-?\d*\.?\d+(?:e-?\d+)?)")
_ID = re.compile(r' id="([^"]+)"')
_OPEN = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"[^>]*>')
_CURVED = re.compile(r"[CcQqAaSsTthvlmz]")


def inlined(svg: str, key: str, alt: str) -> str:
    """Return a drawn chart as part of a page.

    Parameters
    ----------
    svg : str
        As vl-convert writes it.
    key : str
        Unique on the page: the prefix of its ids, which otherwise count up with every chart drawn.
    alt : str
        What it shows, in words and numbers.
    """
    head = _OPEN.match(svg)
    if head is None:
        raise ValueError("no SVG")
    width, height = head.groups()
    body = svg[head.end() :]
    for number, old in enumerate(dict.fromkeys(_ID.findall(body))):
        body = body.replace(f'id="{old}"', f'id="{key}-{number}"').replace(f"url(#{old})", f"url(#{key}-{number})")
    body = body.replace("xlink:href", "href")
    body = _ROLES.sub("", body)
    body = _PATH.sub(lambda m: f' d="{short_path(m.group(1))}"', body)
    body = _TRANSFORM.sub(lambda m: f' transform="{_NUMBERS.sub(_tenth, m.group(1))}"', body)
    body = _without_wrappers(_SHAPES.sub("", body))
    open_ = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(alt)}">'
    )
    return open_ + body


def _without_wrappers(body: str) -> str:
    while True:
        slim = _BARE.sub(r"\1", _EMPTY.sub("", body))
        if slim == body:
            return body
        body = slim


def _tenth(match: re.Match[str]) -> str:
    return _plain(round(float(match.group()), 1))


def _plain(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def short_path(path: str) -> str:
    """Return path data in tenths of a pixel, relative after the first point: half the bytes, the same picture.

    Each step is measured from the rounded place before, so that no error adds up.
    """
    if len(path) < 60 or _CURVED.search(path):
        return path
    tokens = _TOKEN.findall(path)
    parts: list[str] = []
    command, at = "", 0
    x = y = start_x = start_y = 0.0
    while at < len(tokens):
        if tokens[at][0]:
            command, at = tokens[at][0], at + 1
        if command == "Z":
            parts.append("z")
            x, y = start_x, start_y
        elif command in "HV":
            value = round(float(tokens[at][1]), 1)
            at += 1
            x, y = (value, y) if command == "H" else (x, value)
            parts.append(f"{command}{_plain(value)}")
        else:
            new_x, new_y = (round(float(tokens[at + k][1]), 1) for k in (0, 1))
            at += 2
            if command == "M":
                parts.append(f"M{_plain(new_x)} {_plain(new_y)}")
                start_x, start_y, command = new_x, new_y, "L"
            else:
                joint = " " if parts and parts[-1][0] in "l " else "l"
                parts.append(f"{joint}{_plain(new_x - x)} {_plain(new_y - y)}")
            x, y = new_x, new_y
    return "".join(parts)
