"""Train small models, most with one real fault, and write the logs that this folder ships.

Nothing is drawn by hand: every curve is what a training loop measured. Needs torch, scikit-learn,
transformers, accelerate and tensorboard (the ``dev`` extra); about a minute and a half on two slow cores.

    python examples/generate_logs.py
    python examples/generate_logs.py --only loss_spike --out my_logs
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from trainings import digit_runs, text_runs
from trainings.formats import FORMATS, write_tensorboard
from trainings.loop import Log

Train = Callable[[Log], None]

LAYOUTS: dict[Train, tuple[str, ...]] = {
    text_runs.healthy: (".jsonl", ".csv", ".metrics.csv", ".wandb.csv", ".trainer_state.json"),
    text_runs.loss_spike: (".jsonl", ".trainer_state.json"),
    text_runs.unrecovered_spike: (".jsonl", ".csv"),
    text_runs.loss_shift: (".jsonl", ".csv"),
    text_runs.divergence: (".csv", ".wandb.csv"),
    text_runs.nan: (".jsonl", ".metrics.csv", ".trainer_state.json"),
    text_runs.grad_explosion: (".jsonl", ".wandb.csv"),
    text_runs.grad_vanishing: (".csv", ".trainer_state.json"),
    text_runs.lr_zero: (".jsonl", ".metrics.csv"),
    text_runs.lr_jump: (".wandb.csv", ".trainer_state.json"),
    text_runs.overfitting: (".jsonl", ".metrics.csv"),
    text_runs.eval_noise: (".jsonl", ".csv"),
    text_runs.leak: (".csv", ".metrics.csv"),
    text_runs.resumed: (".jsonl", ".csv"),
    digit_runs.healthy_digits: (".csv", ".metrics.csv"),
    digit_runs.plateau: (".jsonl", ".metrics.csv"),
    digit_runs.oscillation: (".csv", ".wandb.csv"),
}
"""The run to the layouts it is written in; the file is the function's name and the ending."""

HUGGING_FACE = ("healthy_hf", "zero_loss")
NAMES = (*(train.__name__ for train in LAYOUTS), "slow_down", *HUGGING_FACE)


def write(train: Train, endings: Sequence[str], out: Path) -> None:
    log = Log()
    train(log)
    for ending in endings:
        FORMATS[ending](out / f"{train.__name__}{ending}", log.rows)


def write_slow_down(out: Path) -> None:
    """Write a table and, as the run goes on, a TensorBoard event file."""
    with write_tensorboard(out / "slow_down") as live:
        log = Log(live)
        text_runs.slow_down(log)
    FORMATS[".csv"](out / "slow_down.csv", log.rows)


def write_hugging_face(name: str, out: Path) -> None:
    """Let the Trainer write its state, and write the same rows once more, a JSON object a line."""
    from trainings import hugging_face

    state = out / f"{name}.trainer_state.json"
    getattr(hugging_face, name)(state)
    keep = ("step", "loss", "learning_rate", "grad_norm", "eval_loss")
    history = json.loads(state.read_text(encoding="utf-8"))["log_history"]
    rows = [{key: row[key] for key in keep if key in row} for row in history]
    FORMATS[".jsonl"](out / f"{name}.jsonl", [row for row in rows if len(row) > 1])


def generate(names: Sequence[str], out: Path) -> None:
    """Write the logs of `names` to the folder `out`, a run at a time."""
    torch.set_num_threads(1)  # the order of a sum, and so its last bits, depends on the number of threads
    out.mkdir(parents=True, exist_ok=True)
    by_name = {train.__name__: train for train in LAYOUTS}
    for name in names:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=out) as folder:
            if name in by_name:
                write(by_name[name], LAYOUTS[by_name[name]], Path(folder))
            elif name == "slow_down":
                write_slow_down(Path(folder))
            else:
                write_hugging_face(name, Path(folder))
            for file in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
                target = out / file.relative_to(folder)
                target.parent.mkdir(exist_ok=True)
                file.replace(target)
        print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent / "logs"
    parser.add_argument("--out", type=Path, default=here, metavar="DIR", help="default: logs/ beside this file")
    parser.add_argument(
        "--only",
        action="append",
        choices=NAMES,
        metavar="NAME",
        help=f"one run; may be repeated: {', '.join(NAMES)}",
    )
    options = parser.parse_args(arguments)
    generate(options.only or NAMES, options.out)


if __name__ == "__main__":
    main()
