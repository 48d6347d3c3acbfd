"""The process that draws: reads one job a line, writes one answer a line, and ends after any failure.

vl-convert can abort the whole process over a single label, and after an error its next answer can be wrong;
whoever asks (:mod:`trainscope.site.drawing`) therefore keeps it apart and starts a new one.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from functools import lru_cache
from typing import Any

VEGA_LITE = "6.4"


def draw(job: dict[str, object]) -> str:
    """Return a chart as SVG, or a picture of an SVG as base64 PNG.

    Raises
    ------
    ValueError
        If vl-convert refuses.
    """
    import vl_convert

    if job["kind"] == "png":
        return base64.b64encode(_small_png(vl_convert.svg_to_png(str(job["svg"]), scale=2))).decode()
    spec = job["spec"]
    assert isinstance(spec, dict)
    form = {name: part for name, part in spec.items() if name not in ("datasets", "params")}
    limits = {param["name"]: param["value"] for param in spec.get("params", ())}
    vega = _compiled(json.dumps([form, sorted(limits)]))
    for part in vega["data"]:
        if "source" not in part:
            part["values"] = spec["datasets"].get(part["name"], [])
    for signal in vega.get("signals", ()):
        signal["value"] = limits.get(signal["name"], signal.get("value"))
    # No address may be loaded; the default would go to the network for a bare path.
    drawn: str = vl_convert.vega_to_svg(json.dumps(vega, allow_nan=False), allowed_base_urls=[])
    return drawn


@lru_cache(maxsize=128)
def _compiled(form: str) -> dict[str, Any]:
    """Return a form as Vega, without data: half the time of a drawing, and the same for every run."""
    import vl_convert

    spec, names = json.loads(form)
    spec["params"] = [{"name": name, "value": 1} for name in names]
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(json.dumps(spec), vl_version=VEGA_LITE)
    return vega


def _small_png(png: bytes) -> bytes:
    """Return a picture in 64 colours: a fifth of the bytes, and it looks the same."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        try:
            answer = {"ok": draw(json.loads(line))}
        except ValueError as error:
            answer = {"error": str(error)[:300]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if "error" in answer:
            return
