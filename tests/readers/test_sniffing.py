"""Who claims what: every reader is asked about every file there is, and exactly one answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainscope.core.errors import TrainscopeError
from trainscope.readers import READERS, read_runs, reader_for
from trainscope.readers.source import Source

pytestmark = pytest.mark.slow

# What the corpus calls its kinds, and who reads them. Other names of kinds are of free text.
READS = {
    "algoperf_csv": {"csv"},
    "baselines_csv": {"csv"},
    "csv_generic": {"csv"},
    "hf_trainer_state": {"hf_trainer"},
    "jsonl_generic": {"jsonl"},
    "keras_csv": {"csv"},
    "lightning_csv": {"lightning"},
    "llamafactory_jsonl": {"jsonl"},
    "monitor_csv": {"csv"},
    "stylegan_jsonl": {"jsonl"},
    "wandb_csv": {"wandb", "wandb_chart"},
    "yolo_csv": {"csv"},
}


def _claims(path: Path) -> list[str]:
    head = Source(str(path)).head
    return [reader.NAME for reader in READERS if reader.sniff(head)]


def test_one_reader_claims_each_real_log(shared: Path) -> None:
    folder = shared / "corpus" / "real"
    for entry in json.loads((folder / "manifest.json").read_text())["files"]:
        path = folder / entry["file"]
        claims = _claims(path)
        source = Source(str(path))
        wanted = READS.get(entry["kind"], {"text"})
        if source.head.whole or claims:
            assert len(claims) == 1, (entry["file"], claims)
        # A log that begins with the source code of its program is claimed by what stands below.
        assert reader_for(source).NAME in wanted, (entry["file"], claims)


def test_one_reader_claims_each_run_of_the_organic_corpus(shared: Path) -> None:
    files = sorted((shared / "corpus" / "organic").glob("*.csv"))
    assert len(files) >= 60
    assert {tuple(_claims(file)) for file in files} == {("csv",)}


@pytest.fixture(scope="module")
def cases(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, str(shared / "cases" / "make_cases.py"), str(out)], check=True, capture_output=True)
    return out


def test_one_reader_claims_each_case_and_what_nobody_claims_is_no_log(cases: Path) -> None:
    files = [p for p in sorted(cases.iterdir()) if p.is_file() and p.name != "expected.json"]
    assert len(files) > 100
    for file in files:
        try:
            claims = _claims(file)
        except TrainscopeError:
            continue  # it cannot be opened: no content, no claim
        assert len(claims) <= 1, (file.name, claims)
        if not claims:
            with pytest.raises(TrainscopeError):
                read_runs(file)


def test_a_run_says_who_read_it_and_why(shared: Path) -> None:
    folder = shared / "corpus" / "real"
    for entry in json.loads((folder / "manifest.json").read_text())["files"]:
        if entry["name"] == "comp3242_wandb":
            continue
        for run in read_runs(folder / entry["file"]):
            assert run.format in {reader.NAME for reader in READERS}, entry["file"]
            if run.format == "text":
                assert [n for n in run.notes if n.kind == "text_lines" and "hold metrics" in n.message], entry["file"]
