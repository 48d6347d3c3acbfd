"""Check the claim that the CUSUM on the loss alarms 9 to 11 steps before the loss diverges.

    python scripts/verify_cusum_lead.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from early_warning import LOSS, report

if __name__ == "__main__":
    report(__doc__ or "", "plain", {"CUSUM of the loss": (LOSS, "9 to 11 steps")})
