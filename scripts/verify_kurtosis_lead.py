"""Check the claim that the kurtosis of activations rises 14 to 18 steps before the loss diverges.

    python scripts/verify_kurtosis_lead.py [--seeds 2] [--cache out/early_warning]

Judged as a story judges it, by the margin of the claim, and by the loss's own detector.
"""

from early_warning import by_cusum, by_departure, by_margin, report

KURTOSIS = "act_kurtosis"

if __name__ == "__main__":
    rules = {
        "kurtosis leaves its usual range": by_departure(KURTOSIS),
        "kurtosis above a fixed margin (the claim's rule)": by_margin(KURTOSIS),
        "kurtosis under the loss's detector": by_cusum(KURTOSIS),
    }
    report(__doc__ or "", "plain", rules)
