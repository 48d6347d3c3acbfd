"""Labelled real logs: what trainscope finds, beside other tools given the same numbers.

    python bench/detectors/real.py --corpus ../shared/corpus/real [--peers FOLDER] [--cache FOLDER] [--most 5000]

FOLDER is the ``bin`` of an environment of its own with trainspotter, losslint and trainpulse. Each log is read by our
readers and handed on as JSON lines with the names that those tools know (step, loss, eval_loss, grad_norm,
learning_rate), so that no tool fails on a format. Logs that we cannot read, and those with more than `--most` steps,
are left out for everyone: one of the tools needs minutes for them.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from intervals import share
from measure import Cache

from trainscope.core.errors import TrainscopeError
from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.readers import read_runs

NAMES = {
    "train/loss": "loss",
    "eval/loss": "eval_loss",
    "train/grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "train/step_time": "step_time",
}
TRAINPULSE = {
    "nan_detector": "non_finite",
    "loss_spike": "spikes",
    "gradient": "grad_norm",
    "learning_rate": "lr_schedule",
    "step_time": "throughput",
}
Said = tuple[str, float | None, float | None]
"""The kind of a finding in our words, and its first and last step where the tool names them."""


def ours(run: Run) -> list[Said]:
    found = [f for f in judge(run, configure(Settings())).findings if f.severity >= Severity.WARNING]
    return [(f.detector, f.start_step, f.end_step) for f in found]


def as_lines(run: Run) -> str:
    """Return a run as JSON lines, a row a step, under the names that every tool knows."""
    rows: dict[int, dict[str, Any]] = {}
    for name, series in run.series.items():
        for step, value in zip(series.step.tolist(), series.value.tolist(), strict=True):
            rows.setdefault(step, {"step": step})[NAMES.get(name, name)] = value
    return "".join(json.dumps(rows[step]) + "\n" for step in sorted(rows))


def trainspotter(tools: Path, log: Path) -> list[Said]:
    said = _json(str(tools / "trainspotter"), "analyze", str(log), "--output", "json")
    return [
        ("non_finite" if "nan" in f["message"].lower() else f["detector"], f["step_start"], f["step_end"])
        for f in said.get("findings", ())
        if f["severity"] in ("warning", "error")
    ]


def losslint(tools: Path, log: Path) -> list[Said]:
    kinds = {"nan_inf": "non_finite", "loss_spike": "spikes", "step_backtrack": "step_order"}
    out: list[Said] = []
    for f in _json(str(tools / "losslint"), "check", str(log), "--format", "json").get("findings", ()):
        if f["severity"] in ("warning", "error"):
            kind = kinds.get(f["check"], f["check"])
            steps = [s for s in f["details"].get("steps", ()) if isinstance(s, (int, float))]
            out.append((kind, min(steps), max(steps)) if steps else (kind, None, None))
    return out


def trainpulse(tools: Path, log: Path) -> list[Said]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run([str(tools / "python"), "-m", "trainpulse.cli", "analyze", str(log), "-o", str(report)],
                       check=False, capture_output=True, timeout=120)  # fmt: skip
        said = json.loads(report.read_text()) if report.is_file() else {}
    first: dict[str, list[float]] = {}
    for a in said.get("alerts", ()):
        if a["severity"] in ("warning", "critical"):
            first.setdefault(TRAINPULSE.get(a["detector"], a["detector"]), []).append(a["step"])
    return [(kind, min(steps), max(steps)) for kind, steps in first.items()]


PEERS: dict[str, Callable[[Path, Path], list[Said]]] = {
    "trainspotter 0.2.6": trainspotter,
    "losslint 0.4.1": losslint,
    "trainpulse 0.4.0": trainpulse,
}


def _json(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    try:
        out: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {}
    return out


@dataclass(slots=True)
class Score:
    """How one tool did on the corpus."""

    found: int = 0
    labels: int = 0
    right: int = 0
    false: int = 0
    healthy: int = 0
    flagged: int = 0

    def add(self, row: dict[str, Any], said: list[Said], kinds: dict[str, set[str]], spikes: set[str]) -> None:
        """Count one file, by the rules of the corpus's own score.py."""
        located = row["x_axis"] in ("step", "iteration")
        explained: set[int] = set()
        for label in row["label"]:
            margin = 51 + label["step_end"] - label["step_start"] if located else 0
            hits = {
                i for i, (kind, start, end) in enumerate(said)
                if kind in kinds[label["pathology"]] and (not located or start is None or end is None or (
                    end >= label["step_start"] - margin and start <= label["step_end"] + margin))
            }  # fmt: skip
            explained |= hits
            if label["severity"] in ("warn", "critical") and label["confidence"] in ("high", "med"):
                self.labels += 1
                self.found += bool(hits)
        false = [
            s for i, s in enumerate(said) if i not in explained and (row["labels_exhaustive"] or s[0] not in spikes)
        ]
        self.right += len(explained)
        self.false += len(false)
        if row["healthy"]:
            self.healthy += 1
            self.flagged += bool(false)


def tables(corpus: Path) -> tuple[dict[str, set[str]], set[str]]:
    """Return two tables of the corpus's own score.py, which is a command and cannot be imported.

    They are the detectors that may name a pathology, and those whose extra findings count only where labels are whole.
    """
    tree = ast.parse((corpus / "score.py").read_text(encoding="utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("KINDS", "SPIKE_KINDS"):
                value = ast.unparse(node.value).replace("set()", "{''}")
                found[name] = ast.literal_eval(value)
    return found["KINDS"], found["SPIKE_KINDS"]


def answers(
    corpus: Path, tools: Path | None, cache: Cache, most: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each row of the manifest that counts, with what every tool says of it."""
    asked = ["trainscope", *(PEERS if tools else ())]
    for row in json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["files"]:
        keys = {name: f"real {row['file']} {most} {name}" for name in asked}
        missing = [name for name, key in keys.items() if key not in cache]
        said = _answers(corpus / row["file"], missing, tools, most) if missing else {}
        for name in missing:
            cache.put(keys[name], said.get(name))
        known = {name: cache.get(key) for name, key in keys.items()}
        if all(found is not None for found in known.values()):
            yield row, known


def _answers(path: Path, asked: list[str], tools: Path | None, most: int) -> dict[str, list[Said]]:
    """Return what each tool says of a log; empty for one that cannot be read or is too long."""
    try:
        runs = read_runs(str(path))
    except TrainscopeError:
        return {}
    if max((len(np.unique(np.concatenate([s.step for s in r.series.values()]))) for r in runs), default=0) > most:
        return {}
    said: dict[str, list[Said]] = {name: [] for name in asked}
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(runs):
            log = Path(folder) / f"{number}.jsonl"
            log.write_text(as_lines(run), encoding="utf-8")
            for name in asked:
                said[name] += PEERS[name](tools, log) if tools and name in PEERS else ours(run)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/corpus/real"))
    parser.add_argument("--peers", type=Path, help="folder with the commands of the other tools")
    parser.add_argument("--cache", type=Path, default=Path("out/detectors"))
    parser.add_argument("--most", type=int, default=5_000, help="steps of the longest log that is given to the tools")
    options = parser.parse_args()
    kinds, spikes = tables(options.corpus)
    scores: dict[str, Score] = {}
    files: Counter[str] = Counter()
    for row, said in answers(options.corpus, options.peers, Cache(options.cache / "real.jsonl"), options.most):
        files["judged"] += 1
        for tool, found in said.items():
            scores.setdefault(tool, Score()).add(row, [(s[0], s[1], s[2]) for s in found], kinds, spikes)
    print(f"{files['judged']} logs\n")
    print("| tool | labels found | right findings | false ones | precision | healthy logs flagged |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tool, s in scores.items():
        precision = share(s.right, s.right + s.false)
        alarms = f"{s.right} | {s.false} | {precision.value:.2f}"
        print(f"| {tool} | {s.found}/{s.labels} | {alarms} | {s.flagged}/{s.healthy} |")


if __name__ == "__main__":
    main()
