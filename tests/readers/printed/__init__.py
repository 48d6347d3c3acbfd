# ruff: noqa: E501 -- lines of logs are as long as they are
"""What many trainers print, line by line, with a loss that is known: written in the style of each, none copied.

Each function returns a text, and the (step, value) points of ``train/loss`` and ``eval/loss`` that are in it.
"""

from __future__ import annotations

from collections.abc import Callable

from .form import Printed, loss_at
from .language import (
    build_nanogpt,
    deepspeed_pipeline,
    fairseq_json,
    fairseq_old,
    hf_stdout,
    hf_stdout_with_bar,
    llmc,
    megatron,
    nanogpt,
    olmo,
    swift,
    torchtitan,
)
from .others import (
    arrows,
    coqui,
    json_after_prefix,
    keras3,
    keras_bars,
    lightning_bar,
    loop_by_hand,
    sb3_table,
    speechbrain,
)
from .phrases import (
    both_sides_on_a_line,
    bracketed_counts,
    cost_after_epoch,
    deeplearning4j,
    early_stopping,
    epoch_that_closes,
    espnet2,
    lightning_checkpoints,
    litgpt,
    loss_at_step,
    marian,
    ml_agents,
    rsl_rl,
    spacy_table,
    timm,
    udacity,
    vae_example,
    xgboost,
)
from .vision import (
    basicsr,
    caffe,
    detectron2,
    mmdetection,
    mmengine,
    paddle_seg,
    pytorch_imagenet,
    pytorch_mnist,
    torchvision,
    ultralytics,
)

__all__ = ["PRINTED", "Printed", "loss_at"]

PRINTED: dict[str, Callable[[], Printed]] = {
    f.__name__: f
    for f in (
        hf_stdout, hf_stdout_with_bar, torchtitan, megatron, deepspeed_pipeline, fairseq_json, fairseq_old, olmo, nanogpt,
        build_nanogpt, llmc, keras_bars, keras3, lightning_bar, detectron2, mmdetection, mmengine, paddle_seg, basicsr,
        sb3_table, speechbrain, coqui, caffe, pytorch_mnist, pytorch_imagenet, torchvision, ultralytics, loop_by_hand,
        arrows, json_after_prefix, swift, spacy_table, marian, espnet2, both_sides_on_a_line, deeplearning4j,
        loss_at_step, cost_after_epoch, epoch_that_closes, rsl_rl, ml_agents, xgboost, timm,
        bracketed_counts, udacity, early_stopping, vae_example, litgpt, lightning_checkpoints,
    )
}  # fmt: skip
