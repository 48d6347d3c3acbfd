"""The recorder reaches the training process and no other."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainscope.smoke
from trainscope.core.errors import TrainingFailedError
from trainscope.smoke.command import Wish, environment

from .conftest import SCRIPTS, Record

HERE = Path(trainscope.smoke.__file__).parent


def test_the_injected_recorder_imports_the_standard_library_and_torch_only():
    for path in (HERE / "injected").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""] if node.level == 0 else []
                # Beside itself it may use the probe, which is as frugal.
                assert node.level < 3 or (node.module or "").split(".")[0] == "probe", f"{path.name}: {node.module}"
            for name in names:
                top = name.partition(".")[0]
                assert top in sys.stdlib_module_names or top == "torch", f"{path.name}: {name}"


def test_a_process_without_torch_imports_nothing_more(tmp_path: Path):
    code = "import sys; print(sorted(sys.modules))"
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    hooked = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(Wish(("x",), 1), tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(ast.literal_eval(hooked.stdout)) - set(ast.literal_eval(plain)) <= {"sitecustomize"}
    assert hooked.stderr == ""
    assert not list(tmp_path.iterdir())


def test_the_sitecustomize_of_the_user_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.from_the_user = 'yes'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", "print(from_the_user)"],
        env=environment(Wish(("x",), 1), tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "yes\n"


def test_the_environment_names_the_hook_first_and_keeps_the_users_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", "some/where")
    found = environment(Wish(("x",), 1), tmp_path)["PYTHONPATH"].split(os.pathsep)
    assert found == [str(HERE / "hook"), "some/where"]
    assert "PYTHONHASHSEED" not in set(environment(Wish(("x",), 1), tmp_path)) - set(os.environ)


@pytest.mark.slow
def test_a_make_target_that_changes_the_folder_is_recorded(record: Record, tmp_path: Path):
    (tmp_path / "Makefile").write_text(f"train:\n\tcd / && {sys.executable} {SCRIPTS / 'plain.py'}\n")
    recorded = record("make", "-f", str(tmp_path / "Makefile"), "train", steps=2)
    assert recorded.runs[0].last_step == 1


@pytest.mark.slow
def test_it_works_where_the_package_is_not_installed(record: Record, tmp_path: Path):
    # -S: no site-packages but torch's, so that neither trainscope nor NumPy's friends can be found.
    import torch

    code = (
        f"import sys; sys.path.append({str(Path(torch.__file__).parents[1])!r});"
        f"sys.argv = ['plain.py']; sys.path.insert(0, {str(SCRIPTS)!r}); import plain;"
        "assert not any(m.partition('.')[0] in ('trainscope', 'pyarrow', 'pydantic') for m in sys.modules)"
    )
    assert record(sys.executable, "-c", code, steps=100).runs[0].last_step == 5


@pytest.mark.slow
def test_an_isolated_python_is_said_to_be_out_of_reach(record: Record):
    with pytest.raises(TrainingFailedError, match=r"python -I, -E and -S hide it"):
        record(sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import plain")


@pytest.mark.slow
def test_a_fault_in_a_hook_is_written_down_and_the_script_goes_on(record: Record, tmp_path: Path):
    # A batch that cannot be looked into: its `values` raises.
    (tmp_path / "odd.py").write_text(
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "from common import *\n"
        "class Odd(dict):\n"
        "    def values(self): raise RuntimeError('do not look')\n"
        "data = [Odd(x=torch.ones(16), y=torch.tensor(1)) for _ in range(24)]\n"
        "batches = torch.utils.data.DataLoader(data, 8, collate_fn=lambda items: Odd(\n"
        "    x=torch.stack([i['x'] for i in items]), y=torch.stack([i['y'] for i in items])))\n"
        "model = MLP(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for batch in batches:\n"
        "    optimizer.zero_grad(); loss = F.cross_entropy(model(batch['x']), batch['y'])\n"
        "    loss.backward(); optimizer.step(); report(loss)\n"
    )
    recorded = record(sys.executable, str(tmp_path / "odd.py"))
    assert recorded.smoke.faults == ("batch: RuntimeError: do not look",)
    run = recorded.runs[0]
    assert run.last_step == 2
    assert run.get("train/loss") is not None
    assert run.get("smoke/target_hash") is not None
