"""Check the claim that routing concentrates on one expert 4 to 12 steps before the loss diverges.

    python scripts/verify_expert_concentration.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from early_warning import EXPERT, report

if __name__ == "__main__":
    report(__doc__ or "", "experts", {"largest share of an expert": (EXPERT, "4 to 12 steps")})
