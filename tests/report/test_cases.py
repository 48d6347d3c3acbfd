"""Case files: one run, many runs, two steps, as data and as Markdown and HTML."""

from __future__ import annotations

import argparse
import base64
import hashlib
import html.parser
import json
import pickle
import re
import zipfile
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.settings import Settings
from trainscope.report import case_html, case_markdown
from trainscope.report.case_document import CaseFile
from trainscope.report.case_outputs import render
from trainscope.report.cases import report_diff, report_run, report_runs
from trainscope.report.schema import schema_text
from trainscope.report.survey_build import letters

from .conftest import hostile_names

SCHEMA = Path(__file__).parents[2] / "schemas" / "report-1.schema.json"
SETTINGS = Settings()
NAMED = ("name", "where", "key", "signal", "title", "message", "reason", "event")
LISTED = ("also", "places", "signals", "because", "fixes", "missing", "unknown", "commands")


def write(
    folder: Path, name: str, *, fault: str = "", steps: int = 300, config: dict | None = None, seed: int = 0
) -> Path:
    """Write a log with a plain fault at step 200, in a folder of its own with its configuration."""
    rng, steps = np.random.default_rng(seed), 300
    loss = 2 + 2 * np.exp(-np.arange(steps) / 40) + 0.02 * rng.standard_normal(steps)
    rate = 1e-3 * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2 + 1e-4
    norm = np.exp(0.05 * rng.standard_normal(steps))
    if fault == "spike":
        norm[199:203] *= 20
        loss[200:203] += 3
    if fault == "rate":
        rate[198:204] *= 30
        loss[200:] += 2
    home = folder / name
    home.mkdir(parents=True)
    lines = [
        json.dumps({"step": i, "loss": float(loss[i]), "learning_rate": float(rate[i]), "grad_norm": float(norm[i])})
        for i in range(steps)
    ]
    (home / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    if config is not None:
        (home / "training_args.json").write_text(json.dumps(config), encoding="utf-8")
    return home / "log.jsonl"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine stable runs, five with a rate that jumps, three with a spike, one that cannot be read."""
    root = tmp_path_factory.mktemp("tree")
    for n in range(9):
        write(root, f"fine{n}", config={"lr": 1e-4 * (n + 1), "batch": 32}, seed=n)
    for n in range(5):
        write(root, f"rate{n}", fault="rate", config={"lr": 0.1 + n, "batch": 32}, seed=20 + n)
    for n in range(3):
        write(root, f"spike{n}", fault="spike", config={"lr": 2e-4, "batch": 32}, seed=40 + n)
    (root / "torn.csv").write_text("step,loss\nx,y\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def survey(tree: Path) -> CaseFile:
    return report_runs([str(tree)], SETTINGS).file


def test_the_committed_schema_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text("report")


def test_every_kind_of_case_file_is_valid_and_reads_back(tree: Path, survey: CaseFile) -> None:
    files = [survey, report_run(str(tree / "rate0"), SETTINGS).file, report_diff(str(tree / "rate0"), 10, 200).file]
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for file in files:
        text = file.to_json()
        assert "NaN" not in text
        assert "Infinity" not in text
        jsonschema.validate(json.loads(text), schema)
        assert CaseFile.model_validate_json(text).to_json() == text
    assert [f.kind for f in files] == ["runs", "run", "diff"]


def test_runs_that_broke_alike_are_together_and_none_is_lost(survey: CaseFile) -> None:
    found = survey.survey
    assert found is not None
    names = {m.id: m.name for m in found.members}
    groups = [sorted(names[m] for m in c.members) for c in found.clusters]
    assert groups == [[f"rate{n}" for n in range(5)], [f"spike{n}" for n in range(3)]]
    assert sorted(names.values()) == sorted(
        [f"fine{n}" for n in range(9)] + [f"rate{n}" for n in range(5)] + [f"spike{n}" for n in range(3)]
    )
    (error,) = survey.errors
    assert error.source.endswith("torn.csv")
    assert (found.broken, found.stable, found.unjudged) == (8, 9, 1)
    assert found.summary == "8 of 17 runs broke, in 2 ways; 9 are stable; 1 log could not be judged."


def test_a_loss_that_never_moves_is_not_said_to_show_nothing(tmp_path: Path) -> None:
    (tmp_path / "flat.csv").write_text("step,loss\n" + "".join(f"{i},2.5\n" for i in range(300)))
    case = report_run(str(tmp_path / "flat.csv"), SETTINGS).file.case
    assert case is not None
    assert case.summary == "Trouble at step 0: nothing is learned. The loss shows it."


def test_a_leak_is_the_case_and_not_the_ripples_at_its_floor() -> None:
    case = report_run(str(Path(__file__).parents[2] / "examples" / "logs" / "leak.csv"), SETTINGS).file.case
    assert case is not None
    assert case.summary.startswith("Trouble at step 1: the answer leaks into the input")


def test_the_trait_of_the_broken_runs_is_their_rate(survey: CaseFile) -> None:
    assert survey.survey is not None
    rate, spike = survey.survey.clusters
    best = rate.traits.traits[0]
    assert (best.key, best.relation, best.value, best.members, best.stable) == ("lr", "≥", 0.1, 5, 0)
    assert spike.traits.traits == []
    assert rate.counterexample.differences[0].key == "lr"
    assert rate.stages[0] == "schedule"
    assert rate.fate.runs == 5
    assert rate.lead is not None
    assert rate.lead.runs == 5


def beside(home: Path, kind: str, rate: float) -> None:
    """Write a configuration as the Trainer, Lightning or Weights & Biases leaves it beside a log."""
    if kind == "lightning":
        (home / "hparams.yaml").write_text(f"lr: {rate}\nbatch: 32\n")
    elif kind == "wandb":
        text = f"wandb_version: 1\nlr:\n  desc: null\n  value: {rate}\nbatch:\n  desc: null\n  value: 32\n"
        (home / "config.yaml").write_text(text)
    else:
        # Of the class nothing is left in a pickle but its name, which nobody imports.
        body = pickle.dumps(argparse.Namespace(lr=rate, batch=32), 2)
        with zipfile.ZipFile(home / "training_args.bin", "w") as archive:
            archive.writestr("training_args/data.pkl", body)


@pytest.mark.parametrize("kind", ["hugging face", "lightning", "wandb"])
def test_the_trait_is_found_wherever_the_settings_of_plain_logs_stand(kind: str, tmp_path: Path) -> None:
    for n in range(7):
        beside(write(tmp_path, f"fine{n}", seed=n).parent, kind, 1e-3 * (n + 1))
        beside(write(tmp_path, f"hot{n}", fault="rate", seed=20 + n).parent, kind, 0.5 + n)
    found = report_runs([str(tmp_path)], SETTINGS).file.survey
    assert found is not None
    (cluster,) = found.clusters
    (trait,) = cluster.traits.traits
    assert (trait.key, trait.relation, trait.value, trait.members, trait.stable) == ("lr", "≥", 0.5, 7, 0)
    assert cluster.counterexample.differences[0].key == "lr"


def test_runs_of_one_name_are_told_apart_by_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        write(tmp_path / f"try{n}", "smoke", fault="spike" if n else "", seed=n)
    monkeypatch.chdir(tmp_path)
    text = case_markdown.render(report_runs(["."], SETTINGS).file)
    (near,) = [line for line in text.splitlines() if line.startswith("Nearest stable run")]
    assert "try0/smoke" in near
    assert "try1/smoke" in near or "try2/smoke" in near
    assert "Middle half" not in text, "two runs have no quartiles"


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(tree: Path, survey: CaseFile) -> None:
    again = report_runs([str(tree)], SETTINGS)
    assert again.file.to_json() == survey.to_json()
    for form in ("markdown", "html"):
        assert render(form, again) == render(form, report_runs([str(tree)], SETTINGS))


def test_one_run_is_told_in_full(tree: Path) -> None:
    reported = report_run(str(tree / "rate1"), SETTINGS)
    case = reported.file.case
    assert case is not None
    assert case.status == "broken"
    assert case.summary.startswith("Broke at step 198: ")
    assert case.main is not None
    incident = case.run.incidents[case.main - 1]
    assert incident.cause == "schedule"
    assert case.replay is not None
    assert case.replay.action == "fix"
    assert any("record the run" in text for text in case.unknown)
    text = render("markdown", reported)
    for heading in (
        "# Case file: rate1",
        "## What happened",
        "## Findings",
        "## Train again",
        "## What this run cannot",
    ):
        assert heading in text


def test_all_healthy_one_run_and_no_configuration_have_each_their_answer(tmp_path: Path) -> None:
    write(tmp_path, "a", config=None, seed=1)
    one = report_runs([str(tmp_path)], SETTINGS).file.survey
    assert one is not None
    assert one.summary == "The one run is stable: nothing at or above warning was found."
    write(tmp_path, "b", seed=2)
    two = report_runs([str(tmp_path)], SETTINGS).file.survey
    assert two is not None
    assert two.summary.startswith("All 2 runs are stable")
    assert two.clusters == []
    write(tmp_path, "c", fault="spike", seed=3)
    (cluster,) = report_runs([str(tmp_path)], SETTINGS).file.survey.clusters  # type: ignore[union-attr]
    assert cluster.traits.reason == "none of these runs has a configuration"
    assert cluster.counterexample.stable is not None
    assert cluster.fate.low[60] is None  # one run makes no band


def test_a_stable_run_has_a_short_case(tree: Path) -> None:
    reported = report_run(str(tree / "fine0"), SETTINGS)
    case = reported.file.case
    assert case is not None
    assert (case.status, case.main, case.weight_change, case.replay) == ("stable", None, None, None)
    assert "Nothing at or above warning" in render("markdown", reported)


def test_several_runs_are_no_case_and_nothing_is_no_data(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"holds 17 runs .* name one of them, or ask for --runs"):
        report_run(str(tree), SETTINGS)
    with pytest.raises(NoDataError, match="no log in this folder"):
        report_runs([str(tmp_path)], SETTINGS)


def test_a_log_has_no_difference_of_weights_and_says_so(tree: Path) -> None:
    reported = report_diff(str(tree / "rate0"), 10, 200)
    assert "No number: " in render("markdown", reported)
    assert "record the run" in render("html", reported)


def test_clusters_are_lettered() -> None:
    assert [letters(n) for n in (0, 25, 26, 51, 52, 702)] == ["A", "Z", "AA", "AZ", "BA", "AAA"]


class Page(html.parser.HTMLParser):
    """Collects the tags of a page and what stands in its style sheet."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


@pytest.mark.parametrize("what", ["survey", "case", "diff"])
def test_the_page_loads_nothing_and_allows_only_its_own_style(tree: Path, what: str) -> None:
    reported = {
        "survey": lambda: report_runs([str(tree)], SETTINGS),
        "case": lambda: report_run(str(tree / "spike0"), SETTINGS),
        "diff": lambda: report_diff(str(tree / "spike0"), 1, 2),
    }[what]()
    text = render("html", reported)
    page = parsed(text)
    css = text[text.index("<style>") + len("<style>") : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("href", "#").startswith("#"), attributes
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))


@pytest.fixture(scope="module")
def plain(tree: Path, survey: CaseFile) -> list[tuple[CaseFile, int, int]]:
    """Case files with how many tags and lines they have."""
    files = [_renamed(f, "plain") for f in (report_run(str(tree / "spike0"), SETTINGS).file, survey)]
    return [(f, len(parsed(case_html.render(f)).tags), case_markdown.render(f).count("\n")) for f in files]


@pytest.mark.parametrize("name", hostile_names())
def test_a_hostile_name_is_shown_and_does_nothing(name: str, plain: list[tuple[CaseFile, int, int]]) -> None:
    for file, tags, lines in plain:
        evil = _renamed(file, name)
        assert len(parsed(case_html.render(evil)).tags) == tags
        assert case_markdown.render(evil).count("\n") == lines
        json.loads(evil.to_json())


def _renamed(file: CaseFile, name: str) -> CaseFile:
    """Return a case file where names of runs, layers, settings and signals are the given one."""
    name = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    data = file.model_dump(mode="json")

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, under in value.items():
                if (
                    key in ("name", "where", "key", "signal", "title", "message", "reason", "event")
                    and under is not None
                ):
                    value[key] = name
                elif key in (
                    "also",
                    "places",
                    "signals",
                    "because",
                    "fixes",
                    "missing",
                    "unknown",
                    "commands",
                    "notes",
                ):
                    value[key] = [name if isinstance(v, str) else v for v in under]
                if key != "metrics":  # a run whose metrics have other names has other tiles
                    walk(value[key])
        elif isinstance(value, list):
            for under in value:
                walk(under)

    walk(data)
    for cluster in (data["survey"] or {}).get("clusters", []):
        cluster["shares"] = dict.fromkeys(cluster["signals"], 0.5)
        cluster["found"] = dict.fromkeys(cluster["found"], 1)
    return CaseFile.model_validate(data)


def test_a_log_without_steps_says_that_it_cannot_be_planned(tmp_path: Path) -> None:
    rows = "".join(f"{e},{2 + (3 if e == 70 else 0) + 0.01 * (e % 3)}\n" for e in range(120))
    (tmp_path / "epochs.csv").write_text(f"epoch,loss\n{rows}", encoding="utf-8")
    case = report_run(str(tmp_path / "epochs.csv"), SETTINGS).file.case
    assert case is not None
    assert case.replay is None
    assert any(text.startswith("how to train again: the log counts epochs and not steps") for text in case.unknown)
