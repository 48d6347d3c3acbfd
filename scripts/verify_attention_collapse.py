"""Check whether attention collapses before the loss diverges: its logits grow, its entropy falls.

    python scripts/verify_attention_collapse.py [--seeds 4 5] [--cache out/early_warning]

Judged as a story judges both, by the limit of `attention_logits`, and by the loss's own detector.
"""

from early_warning import by_cusum, by_departure, by_limit, report

LOGITS, ENTROPY = "attn_logit_max", "attn_entropy"

if __name__ == "__main__":
    rules = {
        "attention logits leave their usual range": by_departure(LOGITS),
        "attention entropy leaves its usual range": by_departure(ENTROPY),
        "attention logits above 100 (`attention_logits`)": by_limit,
        "attention logits under the loss's detector": by_cusum(LOGITS),
        "attention entropy under the loss's detector": by_cusum(ENTROPY, -1.0),
    }
    report(__doc__ or "", "plain", rules)
