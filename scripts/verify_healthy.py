"""Count how often the same rules alarm in healthy trainings of other kinds: the controls of bench/diagnosis.

    python scripts/verify_healthy.py --recordings out/diagnosis [--seeds 3 4 5 6 7]

Twelve kinds (other learning rates, schedules, activations, experts, accumulation), 300 steps, of which every other one
is recorded with its layers. ``bench/diagnosis/run.py --cache out/diagnosis --record`` makes them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from early_warning import CALM, by_cusum, by_departure, by_limit, by_loss, events, rate
from faults import HEALTHY
from recordings import read

RULES = {
    "CUSUM of the loss": by_loss,
    "kurtosis after a norm leaves its usual range": by_departure("act_kurtosis", "ln"),
    "kurtosis of any layer leaves its usual range": by_departure("act_kurtosis"),
    "attention logits leave their usual range": by_departure("attn_logit_max"),
    "attention entropy leaves its usual range": by_departure("attn_entropy"),
    "attention logits above 100 (`attention_logits`)": by_limit,
    "kurtosis under the loss's detector": by_cusum("act_kurtosis"),
    "attention logits under the loss's detector": by_cusum("attn_logit_max"),
    "attention entropy under the loss's detector": by_cusum("attn_entropy", -1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True, help="cache of bench/diagnosis/run.py")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5, 6, 7])
    asked = parser.parse_args()
    runs = [read(asked.recordings / f"{name}-{seed}" / "recorder") for name in HEALTHY for seed in asked.seeds]
    print("| healthy trainings of other kinds | alarms, and in 10,000 recorded steps | trainings flagged |")
    print("| --- | --- | --- |")
    for title, judge in RULES.items():
        found = [events([step for step in judge(run) if step >= CALM]) for run in runs]
        first = next(iter(runs[0].layers["act_kurtosis"].values())) if judge is not by_loss else runs[0].loss
        one = rate(sum(map(len, found)), (len(first) - CALM) * len(runs))
        flagged = sum(map(bool, found))
        print(f"| {title} | {sum(map(len, found))}: {one.value:.1f} (at most {one.high:.1f}) | {flagged}/{len(runs)} |")


if __name__ == "__main__":
    main()
