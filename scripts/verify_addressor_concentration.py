"""Check the claim that a memory's addressing locks onto one slot 7 to 11 steps before the loss diverges.

    python scripts/verify_addressor_concentration.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from early_warning import SLOT, report

if __name__ == "__main__":
    report(__doc__ or "", "addressor", {"largest share of a slot": (SLOT, "7 to 11 steps")})
