"""Check whether attention collapses before the loss diverges: its largest weight rises, its entropy falls.

    python scripts/verify_attention_collapse.py [--seeds 2] [--cache out/early_warning]

Each seed is trained with and without the fault (``early_warning.py``); finished trainings are kept and shared.
"""

from early_warning import ENTROPY, MAXIMUM, report

if __name__ == "__main__":
    rows = {"largest attention weight": (MAXIMUM, "a lead"), "entropy of attention": (ENTROPY, "a lead")}
    report(__doc__ or "", "plain", rows)
