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
from trainscope.store import bundle

from . import test_recorded, test_tensorboard
from .test_registry import SAMPLES, Rows

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


def test_no_file_or_folder_of_the_corpus_and_the_cases_is_claimed_by_two(shared: Path, cases: Path) -> None:
    places = [p for root in (shared / "corpus", cases) for p in sorted(root.rglob("*")) if p.stat().st_mode & 0o400]
    assert len(places) > 300
    for place in places:
        try:
            claims = _claims(place)
        except TrainscopeError:
            continue  # it cannot be opened: no content, no claim
        assert len(claims) <= 1, (place.name, claims)


def test_every_reader_claims_a_log_of_its_own_format_and_no_other_does(rows: Rows, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="it writes the event files")
    own = {test_recorded.make(tmp_path / "recorder", "tiny", range(1, 40)): "recorded"}
    own[test_tensorboard._events(tmp_path / "events", {"loss": dict.fromkeys(range(9), 1.5)})] = "tensorboard"
    baseline = tmp_path / "good.baseline"
    bundle.write(read_runs(next(iter(own)))[0], baseline)
    console = tmp_path / "train.log"
    console.write_text("".join(f"step {row['step']} loss {row.get('loss', 0.5)}\n" for row in rows))
    own |= {baseline: "bundle", console: "text"}
    for name, (reader, build) in SAMPLES.items():
        path = tmp_path / name
        path.write_text(build(rows))
        own[path] = reader
    assert {path.name: _claims(path) for path in own} == {path.name: [reader] for path, reader in own.items()}
    assert set(own.values()) == {reader.NAME for reader in READERS}


def test_every_reader_names_what_it_claims_a_log_by() -> None:
    for reader in READERS:
        said = (sys.modules[reader.__name__].__doc__ or "").splitlines()  # type: ignore[attr-defined]
        assert [line for line in said if line.startswith("Recognised by   ") and len(line.split()) > 4], reader.NAME


def test_a_run_says_who_read_it_and_why(shared: Path) -> None:
    folder = shared / "corpus" / "real"
    for entry in json.loads((folder / "manifest.json").read_text())["files"]:
        if entry["name"] == "comp3242_wandb":
            continue
        for run in read_runs(folder / entry["file"]):
            assert run.format in {reader.NAME for reader in READERS}, entry["file"]
            if run.format == "text":
                assert [n for n in run.notes if n.kind == "text_lines" and "hold metrics" in n.message], entry["file"]
