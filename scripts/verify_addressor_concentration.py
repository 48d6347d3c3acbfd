"""Check the claim that a memory's addressing locks onto one slot 7 to 11 steps before the loss diverges."""

from early_warning import SLOT, report

if __name__ == "__main__":
    report(__doc__ or "", "addressor", {"largest share of a slot": (SLOT, "7 to 11 steps")})
