"""Check whether attention collapses before the loss diverges: its largest weight rises, its entropy falls."""

from early_warning import ENTROPY, MAXIMUM, report

if __name__ == "__main__":
    rows = {"largest attention weight": (MAXIMUM, "a lead"), "entropy of attention": (ENTROPY, "a lead")}
    report(__doc__ or "", "plain", rows)
