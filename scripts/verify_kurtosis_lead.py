"""Check the claim that the kurtosis of activations rises 14 to 18 steps before the loss diverges.

    python scripts/verify_kurtosis_lead.py [--seeds 4 5] [--cache out/early_warning]

Judged as a story judges it (of all layers, and of the norms, which see what the blocks hand on), by the margin of the
claim, and by the loss's own detector. That the norms are the place to look was found on seeds 0 to 3.
"""

from early_warning import by_cusum, by_departure, by_margin, report

KURTOSIS = "act_kurtosis"

if __name__ == "__main__":
    rules = {
        "kurtosis after a norm leaves its usual range": by_departure(KURTOSIS, "ln"),
        "kurtosis of any layer leaves its usual range": by_departure(KURTOSIS),
        "kurtosis above a fixed margin (the claim's rule)": by_margin(KURTOSIS),
        "kurtosis under the loss's detector": by_cusum(KURTOSIS),
    }
    report(__doc__ or "", "plain", rules)
