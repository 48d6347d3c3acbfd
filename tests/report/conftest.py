"""Runs with known faults and judgements made by hand: reports are tested apart from detectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Note, Run, Series
from trainscope.core.settings import Settings
from trainscope.detectors import Judgement
from trainscope.detectors.base import Skipped
from trainscope.report.build import Judged
from trainscope.report.case_document import CaseFile
from trainscope.report.cases import report_runs
from trainscope.report.document import ErrorEntry, Tool
from trainscope.report.pipeline import Analysis, analysis_of

from .case_logs import SETTINGS, write

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "hostile_names.json"


def hostile_names() -> list[str]:
    own = json.loads((Path(__file__).parent / "hostile_names.json").read_text(encoding="utf-8"))
    shared = json.loads(SHARED.read_text(encoding="utf-8")) if SHARED.is_file() else []
    return list(dict.fromkeys([*own, *shared]))


def fix_version(analysis: Analysis) -> Analysis:
    """Golden files must not change with the version."""
    tool = Tool(name="trainscope", version="0.0.0")
    return Analysis(analysis.document.model_copy(update={"tool": tool}), analysis.runs)


@pytest.fixture
def spiky_run() -> Run:
    """A decaying loss without noise: one spike, a few NaN, a quiet gradient with one jump."""
    step = np.arange(0, 400, 2)
    loss = 2.0 + 8.0 * 0.5 ** (step / 60)
    loss[100:103] = [9.0, 6.0, 3.0]
    loss[180:182] = np.nan
    norm = 1.0 + 0.25 * (np.arange(len(step)) % 4)
    norm[100] = 90.0
    rate = 3e-4 * np.minimum(1.0, step / 40)
    eval_step = np.arange(0, 400, 40)
    return Run(
        name="gpt2-small",
        source="runs/a/log.csv",
        format="csv",
        series={
            "train/loss": Series("train/loss", step, loss),
            "eval/loss": Series("eval/loss", eval_step, 2.2 + 8.0 * 0.5 ** (eval_step / 60)),
            "train/grad_norm": Series("train/grad_norm", step, norm),
            "learning_rate": Series("learning_rate", step, rate),
        },
        config={"learning_rate": 3e-4, "scheduler": "constant", "amp": True, "clip": float("inf")},
        notes=(Note("rewind", "steps 40 to 60 were written twice; the later values were kept", 11, 40, 60),),
    )


@pytest.fixture
def judged(spiky_run: Run) -> Judged:
    findings = (
        Finding(
            "spikes",
            Severity.ERROR,
            "Loss spike",
            "train/loss jumped to 9 at step 200, 14.2 MADs above its recent median of 2.8.",
            "train/loss",
            start_step=200,
            end_step=204,
            peak_step=200,
            evidence={"value": 9.0, "baseline": 2.8, "score": float("inf"), "unit": "MAD"},
            fixes=("Skip the batches of steps 198 to 200.", "Clip the gradient norm at 1.0."),
        ),
        Finding(
            "non_finite",
            Severity.WARNING,
            "Non-finite value",
            "train/loss is NaN at 2 of 200 points, steps 360 to 362.",
            "train/loss",
            start_step=360,
            end_step=362,
            peak_step=360,
            evidence={"points": 2},
        ),
        Finding("no_eval", Severity.INFO, "Few evaluations", "Only 10 evaluations.", "eval/loss"),
    )
    skipped = (Skipped("needs train/step_time", "slowdown"),)
    order = ("non_finite", "spikes", "no_eval", "plateau", "slowdown")
    return Judged(spiky_run, Judgement(findings, skipped), order)


@pytest.fixture
def analysis(judged: Judged) -> Analysis:
    return fix_version(analysis_of([judged], Settings()))


@pytest.fixture
def several(judged: Judged) -> Analysis:
    """Two runs, one healthy, and a log that could not be read."""
    step = np.arange(50)
    healthy = Run("healthy", "runs/b/log.csv", "csv", {"train/loss": Series("train/loss", step, 3.0 - 0.02 * step)})
    error = ErrorEntry(source="runs/c/log.csv", line=7, reason="not a number: 'abc'")
    quiet = Judged(healthy, Judgement((), ()), ("non_finite",))
    return fix_version(analysis_of([judged, quiet], Settings(), [error]))


@pytest.fixture
def named() -> Callable[[str], Analysis]:
    """Return an analysis where every text is the given one."""

    def make(name: str) -> Analysis:
        step = np.arange(30)
        series = Series(name, step, np.linspace(3, 2, 30))
        run = Run(
            name,
            name,
            name,
            {name: series},
            config={name: name},
            notes=(Note("odd", f"said {name}"), Note("odd", name)),
        )
        findings = tuple(
            Finding(name, severity, name, f"{name} broke", name, layer, 3, 5, 4, {name: name, "n": 1}, (name,))
            for severity, layer in ((Severity.ERROR, None), (Severity.INFO, name))
        )
        one = Judged(run, Judgement(findings, (Skipped(name, name + "2"),)), (name, name + "2"))
        return analysis_of([one, one], Settings(), [ErrorEntry(source="x", reason="y")])

    return make


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def survey(tree: Path) -> CaseFile:
    return report_runs([str(tree)], SETTINGS).file


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "hostile" in metafunc.fixturenames:
        names = hostile_names()
        metafunc.parametrize("hostile", names, ids=[ascii(n)[:40] for n in names])
