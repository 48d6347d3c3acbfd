"""What a story looks at around an incident: which quantity belongs to which stage, and what counts as odd in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainscope.diagnosis.departures import Watch
from trainscope.diagnosis.signs import Stage


@dataclass(frozen=True, slots=True)
class Watched:
    """A quantity and where in a training step it stands."""

    stage: Stage
    watch: Watch
    words: str
    """What it is called in a sentence."""


_UP, _BOTH = Watch(), Watch(down=True)
_PLAIN = Watch(log=False, down=True, least=0.0)
SERIES: Mapping[str, Watched] = {
    "batch/token_entropy": Watched(Stage.DATA, _PLAIN, "entropy of the batch's tokens"),
    "batch/repetition": Watched(Stage.DATA, Watch(log=False, least=0.1), "repetition in the batch"),
    "batch/padding": Watched(Stage.DATA, Watch(log=False, least=0.1), "padding in the batch"),
    "batch/mean": Watched(Stage.DATA, _PLAIN, "mean of the batch"),
    "batch/std": Watched(Stage.DATA, _BOTH, "spread of the batch"),
    "batch/non_finite": Watched(Stage.DATA, Watch(log=False, least=1e-9), "share of NaN and infinity in the batch"),
    "smoke/input_mean": Watched(Stage.DATA, _PLAIN, "mean of the input"),
    "smoke/input_std": Watched(Stage.DATA, _BOTH, "spread of the input"),
    "smoke/ignored_fraction": Watched(Stage.DATA, Watch(log=False, down=True, least=0.1), "share of ignored labels"),
    "learning_rate": Watched(Stage.SCHEDULE, _BOTH, "learning rate"),
    "amp/grad_scale": Watched(Stage.SCHEDULE, _BOTH, "loss scale"),
    "optimizer/update_norm": Watched(Stage.UPDATE, _UP, "size of the update"),
    "optimizer/v_norm": Watched(Stage.UPDATE, _BOTH, "Adam's second moment"),
    "model/weight_norm": Watched(Stage.UPDATE, Watch(down=True, least=0.02), "norm of the weights"),
    "train/grad_norm": Watched(Stage.GRADIENT, _UP, "gradient norm"),
    "train/loss": Watched(Stage.LOSS, Watch(log=False, least=0.0), "loss"),
    "eval/loss": Watched(Stage.EVAL, Watch(log=False, least=0.0), "evaluation loss"),
}
"""Series of a run. Batch statistics are in the data's own unit, and any change of them that stands out counts."""

LAYERS: Mapping[str, Watched] = {
    "update_ratio": Watched(Stage.UPDATE, _UP, "update over weight"),
    "rms_t": Watched(Stage.UPDATE, _UP, "gradient over Adam's second moment (RMS_t)"),
    "adam_v_norm": Watched(Stage.UPDATE, _BOTH, "Adam's second moment"),
    "weight_l2_norm": Watched(Stage.UPDATE, Watch(down=True, least=0.1), "norm of the weights"),
    "grad_l2_norm": Watched(Stage.GRADIENT, _UP, "gradient norm"),
    "act_std": Watched(Stage.ACTIVATION, _BOTH, "spread of the activations"),
    "act_max_abs": Watched(Stage.ACTIVATION, _UP, "largest activation"),
    "act_kurtosis": Watched(Stage.ACTIVATION, Watch(offset=3.0), "kurtosis of the activations"),
    "act_dead_fraction": Watched(Stage.ACTIVATION, Watch(log=False, least=0.2), "share of dead units"),
    "attn_logit_max": Watched(Stage.ACTIVATION, _UP, "largest attention logit"),
    "attn_entropy": Watched(Stage.ACTIVATION, Watch(up=False, down=True), "entropy of the attention"),
}
"""Statistics of one layer or parameter."""

LOAD = Watched(Stage.ACTIVATION, Watch(log=False, least=0.2), "largest share of one expert or slot")
