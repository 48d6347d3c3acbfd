"""Signs as sentences."""

from __future__ import annotations

import pytest

from trainscope.diagnosis.evidence import said
from trainscope.diagnosis.looking import BAD_GRADIENT, ITSELF, STOPPED
from trainscope.diagnosis.signs import Sign, Stage


@pytest.mark.parametrize(
    ("sign", "sentence"),
    [
        (
            Sign(180, Stage.UPDATE, ITSELF, "went from 0.8582 to inf, though the update before was only 0.0005", "w"),
            "norm of the weights of w went from 0.8582 to inf, though the update before was only 0.0005 at step 180",
        ),
        # The share of NaN is a number; it is the gradient that is none.
        (Sign(180, Stage.GRADIENT, BAD_GRADIENT, STOPPED, "b"), "gradient of b stopped being finite at step 180"),
        (
            Sign(9, Stage.ACTIVATION, "shares", "rose 2-fold from 0.3 to 0.6", "h.1.moe"),
            "largest share of one expert or slot of h.1.moe rose 2-fold from 0.3 to 0.6 at step 9",
        ),
        (Sign(9, Stage.UPDATE, "optimizer/update_norm", STOPPED), "size of the update stopped being finite at step 9"),
        (Sign(9, Stage.LOSS, "my/loss", "rose to 7"), "my/loss rose to 7 at step 9"),
    ],
)
def test_what_is_said_of_a_sign_has_a_subject_in_words(sign, sentence):
    assert said(sign) == sentence
