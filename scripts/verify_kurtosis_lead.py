"""Check the claim that the kurtosis of activations rises 14 to 18 steps before the loss diverges."""

from early_warning import KURTOSIS, report

if __name__ == "__main__":
    report(__doc__ or "", "plain", {"kurtosis of activations": (KURTOSIS, "14 to 18 steps")})
