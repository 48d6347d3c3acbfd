"""Check the claim that routing concentrates on one expert 4 to 12 steps before the loss diverges.

    python scripts/verify_expert_concentration.py [--seeds 4 5] [--cache out/early_warning]

Judged by the live detector `expert_utilization_drift`, and as a story judges it.
"""

from early_warning import by_load, by_shares, report

if __name__ == "__main__":
    rules = {
        "largest share of an expert": by_shares("expert_utilization_drift"),
        "largest share of an expert leaves its usual range": by_load("router"),
    }
    report(__doc__ or "", "routed", rules)
