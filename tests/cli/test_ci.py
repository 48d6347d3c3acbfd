"""The whole pipeline on logs, and on a training script where torch is there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.scripts import classifier


def log(path: Path, shift: float = 0.0, name: str = "metrics.jsonl") -> str:
    rng = np.random.default_rng(0)
    path.mkdir(exist_ok=True, parents=True)
    rows = [
        {"step": i, "loss": float(2 + 3 * np.exp(-i / 30) + 0.05 * rng.standard_normal() + shift), "lr": 1e-3}
        for i in range(150)
    ]
    file = path / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def settings(folder: Path, **values: object) -> None:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    (folder / "trainscope.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(folder: Path) -> dict:
    return json.loads((folder / "findings.json").read_text())


def test_logs_are_judged_and_every_output_is_written(cli, here):
    settings(here, logs=[log(here / "a")])
    result = cli("ci", "--out", "out")
    assert result.code == 0
    assert {p.name for p in (here / "out").iterdir()} == {
        "findings.json",
        "report.md",
        "report.html",
        "bundle",
        "records",
    }
    assert document(here / "out")["baseline"] is None


def test_the_folder_of_one_run_is_the_baseline_of_the_next(cli, here):
    settings(here, logs=[log(here / "a")])
    assert cli("ci", "--out", "base").code == 0
    same = cli("ci", "--out", "same", "--baseline", "base")
    assert same.code == 0
    settings(here, logs=[log(here / "b", shift=0.1)])
    worse = cli("ci", "--out", "worse", "--baseline", "base")
    assert worse.code == 1
    assert "Loss worse than the baseline" in worse.out
    found = document(here / "worse")
    assert found["verdict"]["gate"] == "new"
    assert found["baseline"]["name"] == "base"
    assert found["runs"][0]["findings"][0]["status"] == "new"
    for output in ("report.md", "report.html"):
        assert "Compared with base" in (here / "worse" / output).read_text()


def test_the_junit_file_of_the_gitlab_example_fails_where_its_gate_does(cli, here):
    lines = (Path(__file__).parents[2] / "examples/workflows/gitlab-ci.yml").read_text().splitlines()
    (told,) = [line.split("- trainscope ", 1)[1].split() for line in lines if "--output junit" in line]
    settings(here, logs=[log(here / "a")])
    assert cli("ci", "--out", "base").code == 0
    assert cli("baseline", "save", "base", "--out", "trainscope_baseline.arrow").code == 0
    for shift, failures in ((0.1, "1"), (0.0, "0")):
        settings(here, logs=[log(here / "b", shift=shift)])
        gate = cli("ci", "--out", "trainscope_ci", "--baseline", "trainscope_baseline.arrow")
        assert gate.code == int(shift > 0)
        assert cli(*told).code == gate.code
        assert ElementTree.parse(here / "trainscope_ci/junit.xml").getroot().get("failures") == failures


def test_a_missing_baseline_never_passes_and_the_run_is_kept(cli, here):
    settings(here, logs=[log(here / "a")])
    result = cli("ci", "--out", "out", "--baseline", "gone.arrow")
    assert result.code == 2
    assert "gone.arrow: no such baseline" in result.err
    assert document(here / "out")["verdict"]["status"] == "error"
    assert cli("ci", "--out", "next", "--baseline", "out").code == 0


def test_known_findings_do_not_fail_and_gate_all_makes_them(cli, here):
    broken = Path(log(here / "a"))
    rows = [json.loads(line) for line in broken.read_text().splitlines()]
    for row in rows[100:110]:
        row["loss"] = 0.0
    broken.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings(here, logs=[str(broken)])
    assert cli("ci", "--out", "base").code == 1
    assert cli("ci", "--out", "again", "--baseline", "base").code == 0
    assert {f["status"] for f in document(here / "again")["runs"][0]["findings"]} == {"known"}
    assert cli("ci", "--out", "again", "--baseline", "base", "--gate", "all").code == 1
    settings(here, logs=[log(here / "b")])
    assert cli("ci", "--out", "mended", "--baseline", "base").code == 0
    assert "zero_loss" in {f["detector"] for f in document(here / "mended")["baseline"]["fixed"]}


@pytest.mark.parametrize("baseline", ["trainscope_ci", "./trainscope_ci/", "trainscope_ci/bundle", "saved"])
def test_a_run_never_replaces_the_baseline_that_it_is_compared_with(cli, here, baseline):
    settings(here, logs=[log(here / "a")])
    assert cli("ci").code == 0
    (here / "saved").symlink_to(here / "trainscope_ci")
    before = (here / "trainscope_ci" / "findings.json").read_bytes()
    settings(here, logs=[log(here / "b", shift=0.1)])
    for _ in range(2):
        result = cli("ci", "--baseline", baseline)
        assert (result.code, result.out) == (2, "")
        assert f"--baseline {baseline}: the run would replace it in --out trainscope_ci" in result.err
    assert (here / "trainscope_ci" / "findings.json").read_bytes() == before
    assert cli("ci", "--out", "next", "--baseline", baseline).code == 1


def test_a_baseline_that_was_saved_beside_the_outputs_is_not_replaced(cli, here):
    settings(here, logs=[log(here / "a")])
    cli("ci")
    cli("baseline", "save", "trainscope_ci", "--out", "trainscope_ci/kept.arrow")
    settings(here, logs=[log(here / "b", shift=0.1)])
    assert [cli("ci", "--baseline", "trainscope_ci/kept.arrow").code for _ in range(2)] == [1, 1]


def test_a_fault_in_steps_that_a_run_never_came_to_is_not_called_fixed(cli, here):
    whole = Path(log(here / "a"))
    rows = [json.loads(line) for line in whole.read_text().splitlines()]
    clean = [json.dumps(row) + "\n" for row in rows]
    for row in rows[100:110]:
        row["loss"] = 0.0
    whole.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings(here, logs=[str(whole)])
    cli("ci", "--out", "base")
    for steps, fixed in ((100, []), (112, ["zero_loss"])):
        whole.write_text("".join(clean[:steps]))
        assert cli("ci", "--out", "next", "--baseline", "base").code == 0
        assert [f["detector"] for f in document(here / "next")["baseline"]["fixed"]] == fixed
        assert f"ends at step {steps - 1}, the baseline at step 149" in (here / "next" / "report.md").read_text()


def test_the_same_input_gives_the_same_bytes(cli, here):
    settings(here, logs=[log(here / "a")])
    cli("ci", "--out", "base")
    for name in ("one", "two"):
        cli("ci", "--out", name, "--baseline", "base")
    for file in ("findings.json", "report.md", "report.html"):
        assert (here / "one" / file).read_bytes() == (here / "two" / file).read_bytes()
    (one,), (two,) = ((here / name / "bundle").glob("*.arrow") for name in ("one", "two"))
    assert (one.name, one.read_bytes()) == (two.name, two.read_bytes())


def test_nothing_to_do_is_said(cli, here):
    result = cli("ci")
    assert (result.code, result.out) == (2, "")
    assert "give a command after --" in result.err


def test_a_saved_baseline_is_one_small_file_that_every_command_reads(cli, here):
    source = log(here / "a")
    saved = cli("baseline", "save", source, "--out", "main.arrow")
    assert saved.code == 0
    assert "next: trainscope ci --baseline main.arrow -- COMMAND" in saved.err
    assert (here / "main.arrow").stat().st_size < 20_000
    assert cli("compare", "main.arrow", source).code == 0
    assert cli("compare", "main.arrow", log(here / "b", shift=0.1)).code == 1
    assert cli("analyze", "main.arrow").code == 0


def test_a_damaged_baseline_is_one_line(cli, here):
    cli("baseline", "save", log(here / "a"), "--out", "main.arrow")
    whole = (here / "main.arrow").read_bytes()
    (here / "cut.arrow").write_bytes(whole[: len(whole) * 2 // 3])
    result = cli("compare", "cut.arrow", "main.arrow")
    assert result.code == 2
    assert result.err.strip() == "error: cut.arrow: damaged: not a whole baseline file; save it again"


def test_saving_several_runs_asks_for_one(cli, here):
    log(here / "runs" / "a")
    log(here / "runs" / "b")
    result = cli("baseline", "save", "runs", "--out", "main.arrow")
    assert result.code == 2
    assert "holds 2 runs" in result.err


def test_compare_prefers_the_other_run_for_charts_and_writes_any_form(cli, here):
    a, b = log(here / "a"), log(here / "b", shift=0.1)
    found = json.loads(cli("compare", a, b, "--output", "json").out)
    assert found["runs"][0]["source"] == "b/metrics.jsonl"
    assert cli("compare", a, b, "--output", "html", "--out", "c.html").code == 1
    assert (here / "c.html").read_text().startswith("<!doctype html>")


def test_wall_time_is_never_compared(cli, here):
    def timed(folder: str, seconds: float) -> str:
        file = Path(log(here / folder))
        rows = [
            json.loads(line) | {"step_time": seconds * (1 + (i > 70))}
            for i, line in enumerate(file.read_text().splitlines())
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(file)

    assert cli("compare", timed("a", 0.1), timed("b", 0.9)).code == 0


@pytest.mark.slow
def test_a_bug_in_a_training_script_is_found_against_its_baseline(cli, here):
    pytest.importorskip("torch")
    # The CPU time of a test beside other tests says nothing.
    (here / "trainscope.toml").write_text("[detectors.cost_change]\nenabled = false\n")
    for name, zero in (("good", "optimizer.zero_grad()"), ("bad", "pass")):
        (here / f"{name}.py").write_text(classifier(zero))
    run = ("--", sys.executable)
    first = cli("ci", "--out", "base", *run, "good.py")
    assert first.code == 0
    assert "next: keep it to compare other runs with: trainscope baseline save base" in first.err
    assert cli("ci", "--out", "same", "--baseline", "base", *run, "good.py").code == 0
    result = cli("ci", "--out", "bug", "--baseline", "base", *run, "bad.py")
    assert result.code == 1
    assert "Gradients not cleared" in result.out
    assert "next:" not in result.err


@pytest.mark.slow
def test_a_script_that_crashes_is_exit_code_four(cli, here):
    pytest.importorskip("torch")
    (here / "crash.py").write_text("import torch\nraise RuntimeError('no data')\n")
    result = cli("ci", "--", sys.executable, "crash.py")
    assert result.code == 4
    assert "no data" in result.err
