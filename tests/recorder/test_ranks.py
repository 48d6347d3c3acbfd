"""Two ranks on one machine (gloo): DDP, and FSDP2 with parts of unequal size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import columns  # noqa: E402

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("ranks_script.py")
GLOBAL = ("grad_norm_before_clip", "grad_norm_after_clip", "weight_norm", "update_norm", "optimizer_v_norm")
LAYER = (
    "grad_l2_norm", "grad_max_abs", "grad_mean", "weight_l2_norm", "weight_mean", "weight_std", "weight_min",
    "weight_max", "adam_v_norm",
)  # fmt: skip


def launch(kind: str, folder: Path) -> list[dict]:
    """Run the script on two ranks (one for ``plain``); return what each rank reports."""
    ranks = 1 if kind == "plain" else 2
    command = [sys.executable, str(SCRIPT), kind, str(folder)]
    if ranks > 1:
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    reports = [json.loads((folder / f"{kind}_{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]
    assert all(report["faults"] == {} for report in reports)
    return reports


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    (report,) = launch("plain", tmp_path_factory.mktemp("plain"))
    return Path(report["path"])


def close(got, want, rel):
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        assert a is None or a == pytest.approx(b, rel=rel, abs=1e-6)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_norms_on_two_ranks_are_those_of_the_run_on_one(plain, tmp_path, kind):
    reports = launch(kind, tmp_path)
    want = columns(plain / "global.arrow")
    for report in reports:
        path = Path(report["path"])
        found = columns(path / "global.arrow")
        for name in GLOBAL:
            # Updates are estimated on a sample of each rank's own part.
            close(found[name], want[name], 0.03 if (kind, name) == ("fsdp", "update_norm") else 1e-4)
        for layer in (p.name for p in (plain / "layers").iterdir() if p.stem.startswith(("first", "last", "scale"))):
            got, expected = columns(path / "layers" / layer), columns(plain / "layers" / layer)
            for name in LAYER:
                close(got[name], expected[name], 2e-3)
            counts = [sum(c) for c in got["hist_counts"] if c]
            assert counts == [pytest.approx(sum(c)) for c in expected["hist_counts"] if c]


def test_every_rank_has_a_folder_of_its_own_under_one_name(tmp_path):
    names = sorted(Path(report["path"]).name for report in launch("ddp", tmp_path))
    assert names[0].removesuffix("_rank0") == names[1].removesuffix("_rank1")
    assert names[0] != names[1]


def test_a_spike_on_one_rank_stops_all_of_them_at_the_same_step(tmp_path):
    assert [report["stopped"] for report in launch("stop", tmp_path)] == [3, 3]
