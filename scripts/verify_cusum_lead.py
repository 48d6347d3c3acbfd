"""Check the claim that the CUSUM on the loss alarms 9 to 11 steps before the loss diverges.

    python scripts/verify_cusum_lead.py [--seeds 4 5] [--cache out/early_warning]

Diverged means ten times the usual loss, as in the claim; the lead over a loss that is clearly up is shown beside it.
"""

from early_warning import by_loss, report

if __name__ == "__main__":
    report(__doc__ or "", "plain", {"CUSUM of the loss": by_loss})
