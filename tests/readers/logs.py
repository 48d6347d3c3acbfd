"""Writes the same small log in every format, and reads runs back for comparison."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from trainscope.core.run import Run
from trainscope.readers import read_runs, reader_for
from trainscope.readers.source import Source


def as_jsonl(rows: list[dict[str, Any]], newline: str = "\n") -> str:
    return "".join(json.dumps(row) + newline for row in rows)


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",", decimal: str = ".", newline: str = "\n") -> str:
    names = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, delimiter=delimiter, lineterminator=newline)
    writer.writeheader()
    for row in rows:
        writer.writerow({key: str(value).replace(".", decimal) for key, value in row.items()})
    return out.getvalue()


def as_state(rows: list[dict[str, Any]]) -> str:
    return json.dumps({"global_step": rows[-1]["step"], "max_steps": 500, "log_history": rows})


def only(path: Path, **options: Any) -> Run:
    """Read a log that must hold exactly one run."""
    runs = read_runs(path, **options)
    assert len(runs) == 1, [run.name for run in runs]
    return runs[0]


def runs_of_text(text: str | bytes) -> list[Run]:
    source = Source("run.log", text if isinstance(text, bytes) else text.encode())
    return reader_for(source).read_runs(source)


def run_of_text(text: str | bytes) -> Run:
    """Read a log, given as what it says, that must hold exactly one run."""
    (run,) = runs_of_text(text)
    return run


def kinds(run: Run) -> list[str]:
    return [note.kind for note in run.notes]


def points(run: Run, name: str) -> list[tuple[int, float]]:
    series = run.series[name]
    return list(zip(series.step.tolist(), series.value.tolist(), strict=True))


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
