"""Case files of many runs: which broke alike, what they have in common, what each is told apart by."""

from __future__ import annotations

import argparse
import pickle
import zipfile
from pathlib import Path

import pytest

from trainscope.report import case_markdown
from trainscope.report.case_document import CaseFile
from trainscope.report.cases import report_runs
from trainscope.report.survey_build import letters

from .case_logs import SETTINGS, write


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


def test_clusters_are_lettered() -> None:
    assert [letters(n) for n in (0, 25, 26, 51, 52, 702)] == ["A", "Z", "AA", "AZ", "BA", "AAA"]
