"""Check whether the signals of one divergence come in a fixed order, with the CUSUM of the loss last.

    python scripts/verify_signal_ordering.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from collections import Counter

from early_warning import ENTROPY, KURTOSIS, LOSS, MAXIMUM, RAMP, Signal, alarms, divergence, logs, options

SIGNALS = (LOSS, KURTOSIS, MAXIMUM, ENTROPY)


def first(log: dict[str, list[float]], signal: Signal) -> int | None:
    """Return the first alarm of the ramp."""
    return next((step for step in alarms(log, signal) if step >= RAMP), None)


def main() -> None:
    """Print each order that was seen, the commonest first."""
    asked = options(__doc__ or "")
    orders: Counter[str] = Counter()
    last = diverged = 0
    for seed in range(asked.seeds):
        broken, _ = logs("plain", seed, asked.cache)
        if divergence(broken["loss"]) is None:
            continue
        diverged += 1
        came = {s.name: step for s in SIGNALS if (step := first(broken, s)) is not None}
        ranked = sorted(came, key=lambda name: came[name])
        orders[", ".join(f"{name} +{came[name] - RAMP}" for name in ranked)] += 1
        last += bool(ranked) and came.get("loss", -1) == max(came.values())
    print(f"the loss's CUSUM came last, or with the last, in {last} of {diverged} diverged trainings; claimed: always")
    for order, count in orders.most_common():
        print(f"{count} x {order or 'no signal'} (steps after the ramp began)")


if __name__ == "__main__":
    main()
