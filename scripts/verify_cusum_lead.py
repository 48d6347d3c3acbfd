"""Check the claim that the CUSUM on the loss alarms 9 to 11 steps before the loss diverges."""

from early_warning import LOSS, report

if __name__ == "__main__":
    report(__doc__ or "", "plain", {"CUSUM of the loss": (LOSS, "9 to 11 steps")})
