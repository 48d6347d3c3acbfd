"""Finds the templates: the user's first, one by one, then ours."""

from __future__ import annotations

import hashlib
import traceback
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.core.errors import ConfigError
from trainscope.report.html import WORDS, environment, sentence, stylesheet, where
from trainscope.report.text import figure, label, prose

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = "site_templates"
PAGES = (
    "macros.html.j2",
    "base.html.j2",
    "index.html.j2",
    "all.html.j2",
    "run.html.j2",
    "compare.html.j2",
    "archive.html.j2",
    "feed.xml.j2",
    "badge.svg.j2",
)
ASSETS = ("site.css", "site.js", "index.js", "compare.js", "archive.js", "icon.svg")


_GOES_WRONG = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


def folder() -> Path:
    """Return where our templates lie: beside the code when installed, at the repository's root otherwise."""
    installed = Path(str(files("trainscope"))) / FOLDER
    return installed if installed.is_dir() else Path(__file__).parents[3] / FOLDER


class Templates:
    """The templates of one site.

    Parameters
    ----------
    own : Path, optional
        A folder whose files take the place of ours, each one that is there.

    Raises
    ------
    ConfigError
        If `own` is no folder, or holds a file that no page uses.
    """

    def __init__(self, own: Path | None = None) -> None:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        self.own = own
        self.folders = [folder()] if own is None else [own, folder()]
        if own is not None:
            self._check(own)
        self.environment: Environment = Environment(
            loader=FileSystemLoader([str(f) for f in self.folders]),
            autoescape=True,
            undefined=StrictUndefined,
            keep_trailing_newline=True,
        )
        self.environment.filters.update(figure=figure, label=label, prose=prose, sentence=sentence, where=where)
        self.environment.globals["words"] = dict(WORDS)

    def render(self, name: str, /, **values: object) -> str:
        """Return one page.

        Raises
        ------
        ConfigError
            If a template of the user's is wrong.
        """
        from jinja2 import TemplateError

        # A template is code of its author's, which can go wrong in more ways than ours do.
        wrong = (TemplateError,) if self.own is None else (TemplateError, *_GOES_WRONG)
        try:
            text = self.environment.get_template(name).render(**values)
            text.encode()  # a template may make what no file can hold
            return text
        except wrong as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise ConfigError(f"--templates: {_place(error, name)}: {said[:400]}") from None

    def asset(self, name: str) -> str:
        """Return the text of a style sheet (with the colours that all pages share), a script or a picture.

        Raises
        ------
        ConfigError
            If a file of the user's cannot be read.
        """
        path = next(f / name for f in self.folders if (f / name).is_file())
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--templates {path}: cannot be read ({error.strerror})") from None
        except ValueError:
            raise ConfigError(f"--templates {path}: is no UTF-8 text") from None
        return stylesheet(environment()) + text if name.endswith(".css") else text

    def digest(self) -> str:
        """Return what the looks of a page depend on, as a hash."""
        found = hashlib.sha256()
        for name in (*PAGES, *ASSETS):
            found.update(self.asset(name).encode())
        return found.hexdigest()[:16]

    def _check(self, own: Path) -> None:
        if not own.is_dir():
            raise ConfigError(f"--templates {own}: is no folder")
        try:
            unknown = sorted(p.name for p in own.iterdir() if p.name not in (*PAGES, *ASSETS) or not p.is_file())
        except OSError as error:
            raise ConfigError(f"--templates {own}: cannot be read ({error.strerror})") from None
        if unknown:
            known = ", ".join((*PAGES, *ASSETS))
            raise ConfigError(
                f"--templates {own}: no page uses {unknown[0]}; files that take the place of ours: {known}"
            )


def _place(error: BaseException, name: str) -> str:
    """Return the file and line of a template in which an error arose."""
    found, number = getattr(error, "name", None) or name, getattr(error, "lineno", None)
    if number is None:
        # Jinja gives the frames of its templates their own names and lines.
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name in PAGES]
        if frames:
            found, number = Path(frames[-1].filename).name, frames[-1].lineno
    return str(found) if number is None else f"{found}:{number}"
