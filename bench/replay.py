"""Do the plans skip exactly the bad batches, and does skipping them remove the spike? Measures both.

    python bench/replay.py --cache FOLDER [--seeds 5]

Records small trainings (bench/replay_training.py) with three bad batches or a learning rate that is 30 times too high
for five steps, plans each with ``trainscope replay``, and trains again with ``trainscope smoke --replay``. One process
at a time; a training that is in the cache is not run again. A run takes 10 s of CPU time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from replay_training import AT, BAD

HERE = Path(__file__).resolve().parent
INJECTED = list(range(AT, AT + BAD))
STEPS = 300


def trainscope(*words: object, allowed: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "trainscope", *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        sys.exit(f"trainscope {' '.join(map(str, words))}: {done.returncode}\n{done.stderr}")
    return done


def script(fault: str, seed: int) -> list[object]:
    return ["--", sys.executable, HERE / "replay_training.py", "--fault", fault, "--seed", seed, "--steps", STEPS]


def planned(fault: str, seed: int, cache: Path) -> dict[str, object] | None:
    """Record a training, and return its plan; None where there is nothing to plan."""
    folder = cache / f"{fault}-{seed}"
    if not (folder / "smoke").is_dir():
        trainscope("smoke", "--steps", STEPS, "--out", folder, *script(fault, seed))
    plan = folder / "replay_config.json"
    plan.unlink(missing_ok=True)
    trainscope("replay", "--run", folder / "smoke", "--out", plan)
    return json.loads(plan.read_text(encoding="utf-8")) if plan.exists() else None


def proven(fault: str, seed: int, cache: Path) -> dict[str, object]:
    """Train again by the plan, and return what that proves."""
    folder, again = cache / f"{fault}-{seed}", cache / f"{fault}-{seed}-again"
    document = again / "findings.json"
    if not document.exists():
        plan = folder / "replay_config.json"
        trainscope("smoke", "--replay", plan, "--out", again, *script(fault, seed), allowed=(0, 1, 2))
    (run,) = json.loads(document.read_text(encoding="utf-8"))["runs"]
    return run["replay"]["proof"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="where recorded trainings are kept")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    print("| fault | plan is right | incident removed | loss rise before | after |")
    print("| --- | --- | --- | --- | --- |")
    for fault in ("garbage", "repeated", "rate", "none"):
        right, removed, before, after = 0, 0, [], []
        for seed in range(args.seeds):
            plan = planned(fault, seed, args.cache)
            if fault in ("garbage", "repeated"):
                right += plan is not None and plan["action"] == "skip" and plan["skip_batches"] == INJECTED
                proof = proven(fault, seed, args.cache)
                removed += proof["verdict"] == "verified"
                rows = {(row["metric"], row["what"].split()[0]): row for row in proof["comparisons"]}
                usual, highest = rows["train/loss", "usual"], rows["train/loss", "highest"]
                before.append(highest["original"] - usual["original"])
                after.append(highest["replay"] - usual["replay"])
            elif fault == "rate":
                right += plan is not None and plan["action"] == "fix" and plan["skip_batches"] == []
            else:
                right += plan is None
            print(f"{fault} {seed}: {None if plan is None else plan['reason']}", file=sys.stderr, flush=True)
        n = args.seeds
        rises = (f"{min(v):.2f} to {max(v):.2f}" if v else "" for v in (before, after))
        print(f"| {fault} | {right}/{n} | {f'{removed}/{n}' if before else ''} | {' | '.join(rises)} |", flush=True)


if __name__ == "__main__":
    main()
