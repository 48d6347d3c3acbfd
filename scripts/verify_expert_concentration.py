"""Check the claim that routing concentrates on one expert 4 to 12 steps before the loss diverges."""

from early_warning import EXPERT, report

if __name__ == "__main__":
    report(__doc__ or "", "experts", {"largest share of an expert": (EXPERT, "4 to 12 steps")})
