"""Check the claim that the kurtosis of activations rises 14 to 18 steps before the loss diverges.

    python scripts/verify_kurtosis_lead.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from early_warning import KURTOSIS, report

if __name__ == "__main__":
    report(__doc__ or "", "plain", {"kurtosis of activations": (KURTOSIS, "14 to 18 steps")})
