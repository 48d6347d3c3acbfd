"""``trainscope report`` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.main import run
from trainscope.store.block import LayerBlock
from trainscope.store.writer import RunWriter

NAMES = ("embed.weight", "head.weight")


def record(folder: Path, name: str, *, jump: int | None = None, steps: int = 260, lr: float = 1e-3) -> Path:
    """Record a run whose rate may jump 30-fold for six steps, with histograms every ten."""
    from trainscope.core.config import TrainScopeConfig

    rng = np.random.default_rng(len(name))
    config = TrainScopeConfig(run_dir=str(folder), run_name=name, histogram_every_n_steps=10)
    writer = RunWriter.create(config, meta={"model_name": "tiny", "lr": lr})
    edges = np.tile(np.linspace(-1, 1, 9), (2, 1))
    for step in range(steps):
        after = -1 if jump is None else step - jump
        rate = lr * (1 - step / (2 * steps)) * (30 if 0 <= after < 6 else 1)
        hit = 0.0 if after < 1 else 3.0
        loss = 2 + 2 * np.exp(-step / 40) + 0.02 * rng.standard_normal() + hit
        size = np.exp(0.05 * rng.standard_normal(2))
        moved = 0.3 if after >= 1 else 0.1
        counts = np.array([1000 * np.exp(-(((edges[0, :-1] + 0.125) / w) ** 2)) for w in (moved, 0.1)])
        columns = {
            "grad_l2_norm": size * (5 if after >= 1 else 1),
            "weight_l2_norm": np.array([10 * moved, 1.0]),
            "update_l2_norm": size * rate + np.array([2.1 if after == 0 else 0.0, 0.0]),
            "update_ratio": size * rate,
        }
        histograms = (counts, edges) if step % 10 == 0 else None
        row = {"loss": float(loss), "lr": rate, "grad_norm_before_clip": float(size.sum()) * (5 if hit else 1)}
        writer.append(step, row, LayerBlock(NAMES, columns, None, histograms))
    writer.close()
    return writer.path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for n in range(5):
        record(root, f"fine{n}", lr=1e-3)
    for n in range(3):
        record(root, f"jump{n}", jump=150, lr=3e-3)
    return root


def test_a_recorded_run_is_told_with_its_weights_and_a_plan(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--run", str(root / "jump0")]) == ExitCode.PASS
    text = capsys.readouterr().out
    assert "# Case file: jump0" in text
    assert "❌ **Broke at step 150" in text
    assert "## How the weights moved" in text
    assert "Histograms of steps 140 and 160" in text
    table = text[text.index("## How the weights moved") :]
    assert table.index("| embed.weight |") < table.index("| head.weight |")
    assert "## Train again" in text
    assert "trainscope replay --run" in text


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """Return the folder of one launch of two ranks, of which the second broke."""
    record(tmp_path / "ddp", "gpt_rank0")
    record(tmp_path / "ddp", "gpt_rank1", jump=150)
    return tmp_path / "ddp"


def test_several_ranks_are_one_run_told_by_the_one_that_shows_most(
    launch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "--run", str(launch)]) == ExitCode.PASS
    text = capsys.readouterr().out
    assert "# Case file: gpt_rank1" in text
    assert "This is rank 1 of 2 recorded ranks, which shows the incident best (rank 0: nothing)." in text
    assert run(["report", "--run", str(launch), "--format", "html"]) == ExitCode.PASS
    assert "This is rank 1 of 2 recorded ranks" in capsys.readouterr().out
    assert run(["report", "--run", str(launch), "--diff", "140:160"]) == ExitCode.PASS
    assert "# Weights of gpt_rank0" in capsys.readouterr().out


@pytest.mark.slow
def test_the_ranks_of_a_launch_are_counted_once(launch: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["report", "--runs", str(launch), "--runs", str(root)]
    assert run([*given, "--format", "json"]) == ExitCode.PASS
    survey = json.loads(capsys.readouterr().out)["survey"]
    assert (survey["broken"], survey["stable"]) == (4, 5)
    assert {m["name"]: m["ranks"] for m in survey["members"]}["gpt_rank1"] == 2
    assert run(given) == ExitCode.PASS
    assert "· 2 ranks ·" in capsys.readouterr().out
    assert run([*given, "--format", "html"]) == ExitCode.PASS
    assert "2 ranks" in capsys.readouterr().out


def test_two_steps_are_compared_in_either_order(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spelling in ("140:160", "160:140"):
        assert run(["report", "--run", str(root / "jump0"), "--diff", spelling]) == ExitCode.PASS
        text = capsys.readouterr().out
        assert "steps 140 to 160" in text
        assert "Weight histograms of steps 140 and 160" in text
    assert run(["report", "--run", str(root / "fine0"), "--diff", "140:160", "--format", "json"]) == ExitCode.PASS
    rows = json.loads(capsys.readouterr().out)["diff"]["change"]["layers"]
    assert [row["divergence"] for row in rows] == [0.0, 0.0]


def test_roots_that_a_shell_made_of_a_pattern_are_all_compared(root: Path, capsys: pytest.CaptureFixture[str]):
    one, two, three = sorted(str(p) for p in root.iterdir())[:3]
    assert run(["report", "--runs", one, "--runs", two, "--runs", three, "--format", "json"]) == ExitCode.PASS
    named = capsys.readouterr().out
    assert run(["report", "--runs", one, two, three, "--format", "json"]) == ExitCode.PASS
    assert capsys.readouterr().out == named
    survey = json.loads(named)["survey"]
    assert survey["broken"] + survey["stable"] == 3


def test_many_runs_are_compared_and_written_to_a_file(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.json"
    assert run(["report", "--runs", str(root), "--format", "json", "--out", str(out)]) == ExitCode.PASS
    assert str(out) in capsys.readouterr().out
    survey = json.loads(out.read_text(encoding="utf-8"))["survey"]
    assert (survey["broken"], survey["stable"]) == (3, 5)
    (cluster,) = survey["clusters"]
    assert cluster["traits"]["traits"][0]["key"] == "lr"
    assert cluster["counterexample"]["differences"][0]["key"] == "lr"


def test_a_member_that_cannot_be_read_is_named_and_the_exit_code_says_so(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.csv").write_text("step,loss\nx,y\n", encoding="utf-8")
    given = ["--runs", str(root / "fine0"), "--runs", str(tmp_path)]
    assert run(["report", *given, "--format", "html"]) == ExitCode.CANNOT_JUDGE
    captured = capsys.readouterr()
    assert "broken.csv" in captured.out
    assert captured.err.count("error: ") == 1
    assert "broken.csv" in captured.err


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        ([], "give either --run PATH or --runs ROOT", ExitCode.CANNOT_JUDGE),
        (["--run", "a", "--runs", "b"], "give either --run PATH or --runs ROOT", ExitCode.CANNOT_JUDGE),
        (["a"], "give either --run PATH or --runs ROOT before a", ExitCode.CANNOT_JUDGE),
        (["--run", "a", "b"], "--run is of one run; for b too give --runs a b", ExitCode.CANNOT_JUDGE),
        (["--runs", "a", "--diff", "1:2"], "give it with --run", ExitCode.CANNOT_JUDGE),
        (["--run", "a", "--diff", "1-2"], "give two different steps, such as 100:250", ExitCode.CANNOT_JUDGE),
        (["--run", "a", "--diff", "7:7"], "give two different steps, such as 100:250", ExitCode.CANNOT_JUDGE),
        (["--run", "{root}/fine0", "--diff", "1:9999"], "the run has steps 0 to 259", ExitCode.CANNOT_JUDGE),
        (["--run", "{root}"], "holds 8 runs", ExitCode.CANNOT_JUDGE),
        (["--run", "nowhere"], "no such file", ExitCode.CANNOT_JUDGE),
        (["--runs", "nowhere*"], "no file matches this pattern", ExitCode.NO_DATA),
        (["--run", "{root}/fine0", "--out", "no/such/file"], "create it first", ExitCode.CANNOT_JUDGE),
    ],
)
def test_every_mistake_is_one_line(
    root: Path, arguments: list[str], said: str, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *(a.format(root=root) for a in arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_the_help_imports_no_numbers() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from trainscope.cli.main import run; run(['report', '--help']); "
        "print(sorted({'numpy', 'pyarrow', 'pydantic', 'jinja2', 'rich', 'torch'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_file_that_is_no_report_is_never_written_over(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.md").write_text("# My thesis on trainscope\n")
    assert run(["report", "--run", str(root / "jump0"), "--out", str(tmp_path / "thesis.md")]) == 2
    assert "is there and is no report; name another file" in capsys.readouterr().err
    assert (tmp_path / "thesis.md").read_text() == "# My thesis on trainscope\n"
    (tmp_path / "empty").touch()
    asked = (["--run", str(root / "jump0")], ["--runs", str(root)], ["--run", str(root / "jump0"), "--diff", "10:20"])
    for what in asked:
        for form in ("markdown", "json", "html"):
            again = ["report", *what, "--format", form, "--out", str(tmp_path / "empty")]
            assert run(again) == 0, "over an empty file, and over every other report"
