"""Check whether the signals of one divergence come in a fixed order, with the CUSUM of the loss last.

    python scripts/verify_signal_ordering.py [--seeds 4 5] [--cache out/early_warning]

Judged as in the other scripts, by the loss's live detector and by the rule of a story.
"""

from collections import Counter
from collections.abc import Mapping

from divergences import CLIMBS, GONE, RAMP
from early_warning import by_departure, by_loss, measure, options

RULES = {
    "loss": by_loss,
    "kurtosis": by_departure("act_kurtosis", "ln"),
    "logits": by_departure("attn_logit_max"),
    "entropy": by_departure("attn_entropy"),
}


def order(first: Mapping[str, int]) -> str:
    """Return the signals by the step of their first alarm, those of one step joined by an equals sign."""
    steps = sorted(set(first.values()))
    return " < ".join(" = ".join(name for name in first if first[name] == step) for step in steps)


def is_last(first: Mapping[str, int], name: str) -> bool:
    """Tell whether a signal comes, and no other after it."""
    return name in first and first[name] == max(first.values())


def main() -> None:
    """Print each order that was seen, the commonest first."""
    asked = options(__doc__ or "")
    found = {name: measure("plain", judge, asked.seeds, asked.cache) for name, judge in RULES.items()}
    for climb, growth in CLIMBS.items():
        orders: Counter[str] = Counter()
        last = diverged = 0
        for index, loss in enumerate(found["loss"]):
            if loss.ends[climb][1] is None:
                continue
            diverged += 1
            alarms = {name: [s for s in seeds[index].alarms[climb] if s >= RAMP] for name, seeds in found.items()}
            first = {name: steps[0] for name, steps in alarms.items() if steps}
            orders[order(first)] += 1
            last += is_last(first, "loss")
        print(f"learning rate x{growth} a step: the CUSUM came last in {last} of {diverged} losses x{GONE:g}; orders:")
        for one, count in orders.most_common():
            print(f"  {count} x {one or 'no signal'}")


if __name__ == "__main__":
    main()
