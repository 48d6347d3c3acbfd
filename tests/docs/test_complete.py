"""The documentation is complete: all commands, detectors, readers, metrics, settings and outputs stand in it."""

from __future__ import annotations

import json
import re
import tomllib

import click
import pytest

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.main import COMMANDS, cli
from trainscope.core.metrics import CANONICAL, Kind
from trainscope.core.settings import Settings, settings_from
from trainscope.detectors import DETECTORS
from trainscope.readers import READERS
from trainscope.report.document import Document
from trainscope.report.renderers import OUTPUTS

from .pages import (
    ROOT,
    blocks,
    section,
    text,
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    said = section("docs/cli.md", f"trainscope {name}")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [o for p in command.params if isinstance(p, click.Option) for o in p.opts]
    assert [o for o in options if not re.search(rf"(?<!\S){re.escape(o)}\b", said)] == []


def test_every_exit_code_is_documented():
    for page in ("README.md", "docs/cli.md"):
        assert [c for c in ExitCode if f"| `{c.value}` | {c.name.lower().replace('_', ' ')} |" not in text(page)] == []


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)
def test_every_detector_and_parameter_is_documented(detector):
    said = section("docs/detectors.md", detector.id)
    for heading in ("What it finds", "Algorithm", "Parameters", "False positives", "Misses", "Reference"):
        assert f"**{heading}**" in said
    rows = dict(re.findall(r"^\| `(\w+)` \| (`[^|]*`) \|", said, re.MULTILINE))
    assert list(rows) == list(detector.parameters())
    assert f"[`{detector.id}`]" in text("README.md")


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)
def test_every_parameter_says_what_it_means_and_why_its_default(detector):
    rows = re.findall(r"^\| `\w+` \| .+ \|$", section("docs/detectors.md", detector.id), re.MULTILINE)
    assert [row for row in rows if re.search(r"\|\s*\|", row)] == []


def test_every_reader_is_documented():
    for reader in READERS:
        assert f"[`{reader.NAME}`](docs/readers.md#{reader.NAME})" in text("README.md")
        said = section("docs/readers.md", reader.NAME)
        for field in ("Recognised by", "Keeps", "Drops", "Quirks", "Reference"):
            assert f"- **{field}**: " in said


def test_every_kind_of_note_is_documented():
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src/trainscope/readers").glob("*.py"))
    kinds = set(re.findall(r'\bNote\(\s*"(\w+)"', source))
    assert len(kinds) > 15
    assert kinds == set(re.findall(r"^\| `(\w+)` \|", section("docs/readers.md", "Kinds of notes"), re.MULTILINE))


def test_every_canonical_metric_and_kind_is_documented():
    assert [name for name in CANONICAL if f"| `{name}` |" not in text("docs/metrics.md")] == []
    assert [kind for kind in Kind if f"| `{kind.value}` |" not in text("docs/metrics.md")] == []


def test_every_settings_key_is_documented():
    assert [key for key in Settings.model_fields if f"| `{key}` |" not in text("docs/settings.md")] == []


SAMPLES = {"list of strings": [], "integer": 3, "number": 2.5, "tables": {}}


def test_the_type_of_every_setting_is_the_one_that_it_takes():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", text("docs/settings.md"), re.MULTILINE)
    said = {key: kind.strip() for key, kind, _ in rows if key in Settings.model_fields}
    assert said.keys() == Settings.model_fields.keys()
    for key, kind in said.items():
        words = [json.loads(word) for word in re.findall(r'"\w+"', kind)]
        for value in words or [SAMPLES[kind]]:
            assert getattr(settings_from({key: value}, "here"), key) == value
    assert (said["steps"], said["seed"], said["timeout"]) == ("integer", "integer", "number")
    assert [default.strip() for key, _, default in rows if key == "seed"] == ["unset"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_no_page_says_that_something_is_yet_to_come(page):
    assert re.findall(r"not there yet|none does yet", page.read_text(encoding="utf-8")) == []


def test_every_output_is_documented():
    said = section("README.md", "Outputs")
    assert [output for output in OUTPUTS if not re.search(rf"`(--output )?{output}`", said)] == []


def test_every_field_of_the_report_document_is_documented():
    said = set(re.findall(r"`(\w+)`", section_of_fields()))
    definitions = Document.model_json_schema()["$defs"]
    fields = {name for part in definitions.values() for name in part.get("properties", ())}
    assert sorted((fields | set(Document.model_fields)) - said) == []


def section_of_fields() -> str:
    page = text("docs/findings.md")
    return page[page.index("## Fields") : page.index("## Example")]


def test_the_recorder_page_names_everything_that_is_recorded():
    from trainscope.store.schema import HISTOGRAM_COLUMNS, LAYER_COLUMNS, SCALAR_COLUMNS

    page = text("docs/recorder.md")
    columns = (*SCALAR_COLUMNS, *LAYER_COLUMNS, *HISTOGRAM_COLUMNS)
    assert [name for name in columns if f"`{name}`" not in page] == []


def test_the_settings_page_has_an_example_of_each_place_for_settings():
    examples = [tomllib.loads(block) for block in blocks(ROOT / "docs" / "settings.md", "toml")]
    assert {"tool" in example for example in examples} == {True, False}
