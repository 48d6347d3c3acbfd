"""Low-rank adapters, really trained under the recorder: healthy ones, and each way in which they do not learn."""

from __future__ import annotations

import pytest

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

from .conftest import Record, Script

pytestmark = pytest.mark.slow
HALVES = {f"blocks.{i}.lora_B.weight" for i in range(2)}


def told(record: Record, warm_script: Script, wrong: str) -> dict[str, tuple[Severity, str, tuple[str, ...]]]:
    """Return metric or detector to severity, message and fixes of what is said about a training."""
    run = record(*warm_script("adapters", wrong)).runs[0]
    findings = judge(run, configure(Settings())).findings
    return {f.metric or f.detector: (f.severity, f.message, f.fixes) for f in findings}


@pytest.mark.parametrize("wrong", ["nothing", "first_half"])
def test_healthy_adapters_are_silent_though_the_base_rests_and_lora_a_has_no_gradient_at_first(
    wrong: str, record: Record, warm_script: Script
):
    assert told(record, warm_script, wrong) == {}


@pytest.mark.parametrize("wrong", ["frozen", "left_out", "decay"])
def test_a_second_half_that_does_not_train_is_an_error_that_speaks_of_it(
    wrong: str, record: Record, warm_script: Script
):
    found = told(record, warm_script, wrong)
    severity, message, fixes = found.pop("parameters/half_adapter")
    assert severity is Severity.ERROR
    assert all(name in message for name in HALVES)
    assert "lora_B train" in fixes[0]
    # Weight decay moves lora_A all the same; without another parameter every gradient is 0.
    assert set(found) == ({"train/grad_norm_after_clip"} if wrong != "decay" else set())


def test_a_checkpointed_block_whose_input_needs_no_gradient_is_told_with_the_way_out(
    record: Record, warm_script: Script
):
    ((severity, message, fixes),) = told(record, warm_script, "checkpointing").values()
    assert severity is Severity.WARNING
    assert "4 parameter tensors in an optimizer but never given a gradient" in message
    assert "use_reentrant=False" in fixes[1]


def test_a_scale_that_is_far_too_large_is_told_with_the_adapter_in_which_it_overflows(
    record: Record, warm_script: Script
):
    found = told(record, warm_script, "alpha")
    assert found["train/loss"][0] is Severity.ERROR
    assert any("lora_" in message for _, message, _ in found.values())
