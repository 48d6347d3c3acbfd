"""Write the generated parts of README.md and docs/, or check that they are up to date.

    python scripts/build_docs.py            writes what changed
    python scripts/build_docs.py --check    writes nothing; exit 1 and the list of stale files if any

A part stands between ``<!-- made:NAME -->`` and ``<!-- end:NAME -->``; everything outside is written by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import code_pages
import detector_pages
import evidence_page
import reader_pages

ROOT = Path(__file__).resolve().parents[1]
PARTS: Mapping[str, Callable[[], str]] = {
    **code_pages.PARTS,
    **detector_pages.PARTS,
    **reader_pages.PARTS,
    **evidence_page.PARTS,
}
_PART = re.compile(r"<!-- made:(?P<name>[a-z_]+) -->\n.*?<!-- end:(?P=name) -->", re.DOTALL)
_MARK = re.compile(r"<!-- (?:made|end):([a-z_]+) -->")


def pages() -> list[Path]:
    """Return the pages that may hold generated parts, README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def filled(text: str, where: str) -> str:
    """Return a page with every generated part written anew.

    Parameters
    ----------
    text : str
        The page as it is.
    where : str
        Its name, for errors.

    Raises
    ------
    SystemExit
        If a marker has no partner, or nobody makes a part of its name.
    """

    def make(part: re.Match[str]) -> str:
        name = part["name"]
        if name not in PARTS:
            raise SystemExit(f"{where}: nobody makes {name!r}; known: {', '.join(sorted(PARTS))}")
        return f"<!-- made:{name} -->\n{PARTS[name]().strip()}\n<!-- end:{name} -->"

    whole = [name for part in _PART.finditer(text) for name in (part["name"], part["name"])]
    if sorted(whole) != sorted(_MARK.findall(text)):
        raise SystemExit(f"{where}: a made: marker without its end: marker, or the other way round")
    return _PART.sub(make, text)


def stale() -> dict[Path, str]:
    """Return the pages whose generated parts are out of date, each with its new text."""
    found = {}
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = filled(old, page.relative_to(ROOT).as_posix())
        if new != old:
            found[page] = new
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    options = parser.parse_args()
    found = stale()
    for page, text in found.items():
        print(page.relative_to(ROOT).as_posix(), "is stale" if options.check else "written")
        if not options.check:
            page.write_text(text, encoding="utf-8", newline="\n")
    if found and options.check:
        print("run: python scripts/build_docs.py", file=sys.stderr)
    return 1 if found and options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
