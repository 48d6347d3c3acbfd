"""What a hostile log or pull request can try, and what becomes of it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.github.conftest import ROOT, inputs

from trainscope.cli.main import run
from trainscope.cli.output import say, tell
from trainscope.core.errors import ConfigError
from trainscope.github.annotations import annotate
from trainscope.github.check import arguments
from trainscope.github.comment import marker_of
from trainscope.github.fitting import MAX_COMMENT_CHARACTERS, MAX_SUMMARY_BYTES, comment_text, summary_text
from trainscope.github.result import check_key
from trainscope.github.told import Links, pieces_of
from trainscope.github.workflow_commands import command, disarmed, write_outputs

LINKS = Links("https://github.example/run")
NAMES = [
    "<!-- trainscope:comment:v1 key=default -->",
    "@octocat @everyone",
    "![](http://evil.example/beacon.png)",
    "[click](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "</details></details><script>alert(1)</script>",
    "#1 GH-1 owner/repo#2",
    "| a | b |",
    "```\n::error::x",
    "${{ github.token }} $(id) `id`",
    "::error::fake",
    "::stop-commands::x",
    "\n::set-output name=verdict::pass",
    "%0A::error::x",
    "https://evil.example www.evil.example",
    "\u202e\u200b\x1b[31m",
    "x" * 5000,
]


def renamed(bundle, text: str):
    """Put a text everywhere that a log or a pull request can put one."""
    run = bundle.document.runs[0]
    finding = run.findings[0].model_copy(
        update={"title": text, "message": text, "metric": text, "layer": text, "fixes": [text], "detector": text,
                "evidence": {text: text, "value": text}}
    )  # fmt: skip
    story = [e.model_copy(update={"text": text, "signal": text, "where": text}) for e in run.story]
    run = run.model_copy(update={"name": text, "source": text, "format": text, "findings": [finding], "story": story})
    document = bundle.document.model_copy(update={"runs": [run]})
    result = bundle.result.model_copy(update={"reason": text[:1000], "output": [text[:400]]})
    return replace(bundle, document=document, result=result, records=())


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_no_text_of_a_log_becomes_markup_in_a_comment(bundle, name):
    text = comment_text(pieces_of(renamed(bundle, name), LINKS), marker_of("default"))
    assert text.split("\n")[0] == "<!-- trainscope:comment:v1 key=default -->"
    # Code spans show what is in them as it is; what is outside of them must be harmless.
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert outside.count("<!--") == 1
    for wrong in (r"@\w", r"(?<!\\)!\[", r"<img", r"<script", r"(?<!\w)#\d", r"\bGH-\d",
                  r"https?://evil", r"www\.evil", "\u202e", "\x1b"):  # fmt: skip
        assert not re.search(wrong, outside), (wrong, outside)
    links = re.findall(r"(?<!\\)\]\(([^)]*)\)", outside)
    assert links == ["https://github.example/run"]
    assert outside.count("<details>") == outside.count("</details>") == 1
    assert len(text) <= MAX_COMMENT_CHARACTERS


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_an_annotation_is_one_command_whatever_is_in_it(bundle, name, tmp_path):
    lines = annotate(renamed(bundle, name), 10, tmp_path, tmp_path)
    assert len(lines) == 1
    assert re.fullmatch(r"::warning title=[^:,\r\n]*::[^\r\n]*", lines[0])
    assert len(lines[0]) < 6000


def test_a_value_of_several_lines_sets_no_other_output(tmp_path):
    file = tmp_path / "out"
    write_outputs(file, {"reason": "x\nverdict=pass\nverdict<<E\npass\nE"})
    lines = file.read_text().split("\n")
    delimiter = lines[0].split("<<")[1]
    assert re.fullmatch(r"end_[0-9a-f]{32}", delimiter)
    assert lines.index(delimiter) == len(lines) - 2


def test_properties_and_data_are_escaped_as_the_runner_unescapes_them():
    assert command("error", "a%b\r\nc", title="x:y,z%") == "::error title=x%3Ay%2Cz%25::a%25b%0D%0Ac"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", "../../x"),
        ("key", "a -->\n@octocat"),
        ("key", "$(id)"),
        ("steps", "1; rm -rf x"),
        ("seed", "-1"),
        ("run_timeout", "0"),
        ("fail_on", "--out"),
        ("gate", "new\nall"),
        ("annotations", "11"),
        ("comment", "yes"),
        ("summary", "True"),
        ("site_url", "javascript:alert(1)"),
        ("site_url", "https://x/)](http://evil"),
        ("artifact_name", "../x"),
        ("comment_author", "a b"),
    ],
)
def test_an_input_that_is_no_value_of_its_kind_is_one_clear_line(name, value, tmp_path):
    given = inputs(**{name: value})
    with pytest.raises(ConfigError) as caught:
        every_input(given, tmp_path)
    assert "\n" not in str(caught.value)
    assert name.replace("_", "-") in str(caught.value)


def every_input(given, folder) -> None:
    check_key(given.key)
    arguments(given, None, folder)
    _ = (given.annotations, given.comment("auto"), given.site_url, given.artifact_name, given.comment_author)
    given.flag("summary", default=True)


def test_hostile_inputs_stay_one_argument_each(tmp_path):
    given = arguments(inputs(logs="--out=/x\n$(id)\n; rm -rf x", config="-rf"), None, tmp_path)
    assert given[-6:] == ["--logs", "--out=/x", "--logs", "$(id)", "--logs", "; rm -rf x"]
    assert given[given.index("--config") + 1] == "-rf"


def test_no_expression_stands_in_a_script():
    for path in [ROOT / "action.yml", *(ROOT / name / "action.yml" for name in ("comment", "record", "site"))]:
        scripts = re.findall(r"run: \|\n((?:        .*\n?)+)", path.read_text())
        assert scripts
        assert not any("${{" in script for script in scripts)


@pytest.mark.parametrize(
    "name", ["##[set-output name=verdict;]pass", "##vso[task.setvariable]x", "::stop-commands::x", " ::add-mask::e"]
)
def test_no_line_of_ours_is_obeyed_for_what_is_named_in_it(name, capsys, tmp_path, monkeypatch):
    tell(f"artifact x: holds {name!r}, which leads out of it")
    say(f"{name}: dropped\n{name}")
    monkeypatch.chdir(tmp_path)
    rows = ({"step": i, "run": name, "loss": 2.0 / i, name: math.nan if i > 90 else 1.0} for i in range(1, 120))
    Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert run(["analyze", f"{name}.jsonl"]) == 0
    said = capsys.readouterr()
    lines = [*said.out.splitlines(), *said.err.splitlines()]
    assert len(lines) > 6
    for line in lines:
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
    assert disarmed("## [x] a::b ##") == "## [x] a::b ##"


@pytest.mark.slow
def test_a_document_of_endless_findings_still_fits(bundle):
    run = bundle.document.runs[0]
    many = [run.findings[0].model_copy(update={"message": "é🧨" * 500, "fingerprint": str(i)}) for i in range(3000)]
    runs = [run.model_copy(update={"name": f"{i}" * 50, "findings": many[i::10]}) for i in range(10)]
    pieces = pieces_of(replace(bundle, document=bundle.document.model_copy(update={"runs": runs})), LINKS)
    comment, summary = comment_text(pieces, marker_of("default")), summary_text(pieces)
    assert 40_000 < len(comment.encode("utf-16-le")) // 2 <= MAX_COMMENT_CHARACTERS
    assert 900_000 < len(summary.encode()) <= MAX_SUMMARY_BYTES
    for text in (comment, summary):
        assert "2960 more findings in the report" in text
        assert text.count("<details>") == text.count("</details>")
        assert "had no room here" in text
