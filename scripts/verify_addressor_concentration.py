"""Check the claim that a memory's addressing locks onto one slot 7 to 11 steps before the loss diverges.

    python scripts/verify_addressor_concentration.py [--seeds 4 5] [--cache out/early_warning]

Judged by the live detector `addressor_concentration_drift`, and as a story judges it.
"""

from early_warning import by_load, by_shares, report

if __name__ == "__main__":
    rules = {
        "largest share of a slot": by_shares("addressor_concentration_drift"),
        "largest share of a slot leaves its usual range": by_load("addressor"),
    }
    report(__doc__ or "", "routed", rules)
