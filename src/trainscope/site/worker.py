"""The process that draws: reads one job a line, writes one answer a line, and ends after any failure.

vl-convert can abort the whole process over a single label, and after an error its next answer can be wrong;
whoever asks (:mod:`trainscope.site.drawing`) therefore keeps it apart and starts a new one.
"""

from __future__ import annotations

import base64
import io
import json
import sys

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
    spec = json.dumps(job["spec"], allow_nan=False)
    # No address may be loaded; the default would go to the network for a bare path.
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    return drawn


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
