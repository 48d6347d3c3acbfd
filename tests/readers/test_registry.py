from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainscope.core.errors import ConfigError, NoReaderError, ReadError
from trainscope.readers import READERS, read_runs
from trainscope.readers.source import Source

from .logs import as_csv, as_jsonl, as_state, kinds, write
from .test_csv_flavours import HISTORY, RUNS, _chart

Rows = list[dict[str, Any]]
SAMPLES: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "trainer_state.json": ("hf_trainer", as_state),
    "state_elsewhere.txt": ("hf_trainer", as_state),
    "log.jsonl": ("jsonl", as_jsonl),
    "lines.json": ("jsonl", as_jsonl),
    "lines.csv": ("jsonl", as_jsonl),
    "one.jsonl": ("jsonl", lambda rows: as_jsonl(rows[:1])),
    "cut.jsonl": ("jsonl", lambda rows: as_jsonl(rows)[:-9]),
    "array.json": ("json", lambda rows: "[" + ",".join(as_jsonl(rows).splitlines()) + "]"),
    "array.jsonl": ("json", lambda rows: "[\n" + ",\n".join(as_jsonl(rows).splitlines()) + "\n]"),
    "history.json": ("json", lambda rows: '{"loss": [1, 2], "val_loss": [1, NaN]}'),
    "plain.csv": ("csv", as_csv),
    "header_only.csv": ("csv", lambda rows: as_csv(rows).splitlines()[0] + "\n"),
    "single.csv": ("csv", lambda rows: "loss\n1\n2\n"),
    "table.txt": ("csv", lambda rows: as_csv(rows, "\t")),
    "results.csv": ("csv", lambda rows: "   epoch,  train/box_loss\n   1,   0.5\n   2,   0.4\n"),
    "wandb.csv": ("wandb", lambda rows: HISTORY),
    "wandb_export.csv": ("wandb", lambda rows: RUNS),
    "chart.csv": ("wandb_chart", lambda rows: _chart()),
    "metrics.csv": ("lightning", lambda rows: as_csv([{"epoch": 0} | row for row in rows])),
    "twins.csv": ("lightning", lambda rows: "epoch,step,a_step,a_epoch\n0,1,2,\n0,1,,2\n"),
}
NO_LOGS = {
    "notes.txt": "Training went well.\nThe loss, as expected, fell.\n",
    "script.py": "import torch\nx, y = 1, 2\nprint(x, y)\n",
    "page.html": "<html><body>1,2,3</body></html>",
    "config.json": '{"lr": 0.1, "layers": [1, 2]}',
    "console.log": "{'loss': 1.0, 'epoch': 0.1}\n{'loss': 0.9, 'epoch': 0.2}\n",
    "numbers.json": "[0.1, 0.2, 0.3]",
    "binary.csv": "\0\1\2\3" * 100,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_exactly_one_reader_claims_a_log(name: str, rows: Rows, tmp_path: Path) -> None:
    expected, build = SAMPLES[name]
    head = Source(str(write(tmp_path, name, build(rows)))).head
    assert [reader.NAME for reader in READERS if reader.sniff(head)] == [expected]


@pytest.mark.parametrize("name", NO_LOGS)
def test_no_reader_claims_what_is_no_log(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, NO_LOGS[name])
    with pytest.raises(NoReaderError) as caught:
        read_runs(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert all(reader.NAME in message for reader in READERS)


def test_every_reader_has_a_name_of_its_own_and_a_description() -> None:
    assert len({reader.NAME for reader in READERS}) == len(READERS)
    assert all(reader.DESCRIPTION and "\n" not in reader.DESCRIPTION for reader in READERS)


def test_every_reader_page_has_the_fixed_headings() -> None:
    for reader in READERS:
        page = sys.modules[reader.read_runs.__module__].__doc__ or ""
        for heading in ("Recognised by", "Keeps", "Drops", "Quirks", "Reference"):
            assert f"\n{heading} " in page, (reader.NAME, heading)


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'jsonl'"):
        read_runs(write(tmp_path, "a.jsonl", ""), format="jsnl")


@pytest.mark.parametrize("name", ["missing.csv", "no/such/folder.jsonl", "nul\0byte"])
def test_a_path_that_cannot_be_opened_is_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        read_runs(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_an_empty_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoReaderError, match=r"without trainer_state\.json"):
        read_runs(tmp_path)


def test_standard_input_is_read_as_bytes(rows: Rows, monkeypatch) -> None:
    class Stdin:
        buffer = io.BytesIO(as_csv(rows).encode("utf-16"))

    monkeypatch.setattr(sys, "stdin", Stdin)
    (run,) = read_runs("-")
    assert (run.name, run.source, run.format) == ("stdin", "-", "csv")
    assert kinds(run) == ["encoding"]


def test_importing_the_readers_loads_no_heavy_library() -> None:
    code = (
        "import sys, trainscope.readers, trainscope.readers.follow; "
        "print([m for m in ('pyarrow', 'pandas', 'torch', 'tbparse') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
