"""All pages have their colours from one sheet."""

from __future__ import annotations

import re

from trainscope.report.html import COLOURS, environment, stylesheet
from trainscope.site.templates import Templates


def test_no_other_sheet_says_what_a_colour_is():
    colours = stylesheet(environment())
    names = set(re.findall(r"--[\w-]+(?=: light-dark)", colours))
    assert "--ink" in names
    rest = [environment().loader.get_source(environment(), name)[0] for name in ("report.css", "case.css")]
    site = Templates().asset("site.css")
    assert site.startswith(colours)
    for sheet in (*rest, site.removeprefix(colours)):
        assert names.isdisjoint(re.findall(r"--[\w-]+(?=:)", sheet))
    assert COLOURS == "colours.css"
