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
from tests.recorder.ranks_script import STEPS, train  # noqa: E402

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("ranks_script.py")
KINDS = ("ddp", "fsdp", "stop", "first")
GLOBAL = ("grad_norm_before_clip", "grad_norm_after_clip", "weight_norm", "update_norm", "optimizer_v_norm")
LAYER = (
    "grad_l2_norm", "grad_max_abs", "grad_mean", "weight_l2_norm", "weight_mean", "weight_std", "weight_min",
    "weight_max", "adam_v_norm",
)  # fmt: skip


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, list[dict]]:
    """Run all kinds on two ranks, in one process each; return what each rank reports of each kind."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(SCRIPT), str(folder), *KINDS], capture_output=True, text=True, check=False, timeout=240, env=env
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {
        kind: [json.loads((folder / f"{kind}_{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """Return the run of the same training on one rank, in this process."""
    report = train("plain", str(tmp_path_factory.mktemp("plain")))
    assert report["faults"] == {}
    return Path(str(report["path"]))


def close(got, want, rel):
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        assert a is None or a == pytest.approx(b, rel=rel, abs=1e-6)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_norms_on_two_ranks_are_those_of_the_run_on_one(plain, reports, kind):
    want = columns(plain / "global.arrow")
    for report in reports[kind]:
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


def test_every_rank_has_a_folder_of_its_own_under_one_name(reports):
    names = sorted(Path(report["path"]).name for report in reports["ddp"])
    assert names[0].removesuffix("_rank0") == names[1].removesuffix("_rank1")
    assert names[0] != names[1]


def test_a_script_that_records_on_its_first_rank_only_does_not_hang(reports):
    path = Path(reports["first"][0]["path"])
    assert path.name.endswith("_rank0")
    assert len(columns(path / "global.arrow")["step"]) == STEPS
    assert reports["first"][1]["path"] == "None"


def test_a_spike_on_one_rank_stops_all_of_them_at_the_same_step(reports):
    assert [report["stopped"] for report in reports["stop"]] == [3, 3]
    assert [report["stopped"] for report in reports["ddp"]] == [None, None]


@pytest.mark.parametrize("kind", KINDS)
def test_the_recorder_has_no_fault_on_any_rank(reports, kind):
    assert [report["faults"] for report in reports[kind]] == [{}, {}]
