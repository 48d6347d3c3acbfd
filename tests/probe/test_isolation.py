"""The probe works where only torch is installed."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).parents[2] / "src" / "trainscope" / "probe"


def test_the_probe_imports_the_standard_library_and_torch_only():
    for path in PROBE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            for name in names:
                top = name.partition(".")[0]
                # numpy is imported only to restore its own generator, in a process that had one.
                allowed = (
                    top in sys.stdlib_module_names or top == "torch" or (path.stem, top) == ("random_state", "numpy")
                )
                assert allowed, f"{path.name}: {name}"


@pytest.mark.slow
def test_the_probe_measures_where_the_package_is_not_installed(tmp_path):
    pytest.importorskip("torch")
    shutil.copytree(PROBE, tmp_path / "probe")
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch, probe\n"
        "model = torch.nn.Linear(3, 3)\n"
        "p = probe.Probe(model, [], probe.Options(), probe.Boundary())\n"
        "p.attach()\n"
        "model(torch.ones(1, 3)).sum().backward()\n"
        "(reading,) = p.read([p.measure()])\n"
        "assert abs(float(reading.columns['grad_l2_norm'][0]) - 3) < 1e-6\n"
        "assert not any(m.startswith('trainscope') for m in sys.modules)\n",
        encoding="utf-8",
    )
    start = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path({str(script)!r})"
    done = subprocess.run([sys.executable, "-I", "-c", start], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_numbers_leave_the_device_in_one_place_only():
    """``.item()``, ``.tolist()``, ``.cpu()``, ``float(tensor)``: each would wait for an accelerator."""
    moves = {"item", "cpu"}  # numpy() does not wait: it refuses a tensor that is not on the CPU
    for path in PROBE.glob("*.py"):
        if path.stem in ("transfer", "random_state"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in moves, f"{path.name}:{node.lineno}"
