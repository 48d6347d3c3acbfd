"""Stories of real trainings, recorded as a user would."""

from __future__ import annotations

import pytest

from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.diagnosis.signs import Cause, Stage, Story
from trainscope.diagnosis.story import tell
from trainscope.readers import read_runs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
STEPS, AT = 240, 160


def recorded(folder, strike) -> tuple[Story, ...]:
    """Train a small network on a fixed function; `strike` may do something at each step."""
    from trainscope import TrainScope, TrainScopeConfig

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    config = TrainScopeConfig(
        run_dir=str(folder), run_name="run", activation_metrics_every_n_steps=1, histogram_every_n_steps=10_000
    )
    generator = torch.Generator().manual_seed(1)
    with TrainScope(model, optimizer, config) as scope:
        for step in range(STEPS):
            x = torch.randn(128, 16, generator=generator)
            y = torch.sin(x[:, :4].sum(1, keepdim=True)) + 0.1 * torch.randn(128, 1, generator=generator)
            strike(step, model, optimizer)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            scope.step(loss.item(), batch_index=step)
            optimizer.step()
    (run,) = read_runs(str(folder / "run"))
    return tell(run, judge(run, configure(Settings())).findings)


def test_a_healthy_recording_has_no_story(tmp_path):
    assert recorded(tmp_path, lambda *_: None) == ()


def test_a_leap_of_the_learning_rate_is_seen_before_the_loss(tmp_path):
    def strike(step, _model, optimizer):
        optimizer.param_groups[0]["lr"] = 0.1 if AT <= step < AT + 3 else 1e-3

    story = recorded(tmp_path, strike)[0]
    assert (story.cause, story.onset) == (Cause.SCHEDULE, AT)
    assert {s.stage for s in story.signs} >= {Stage.SCHEDULE, Stage.UPDATE, Stage.LOSS}
    assert story.lead is not None
    assert story.lead >= 1


def test_weights_that_something_else_writes_to_are_named(tmp_path):
    def strike(step, model, _optimizer):
        if step == AT:
            with torch.no_grad():
                model[2].weight.mul_(20.0)

    story = recorded(tmp_path, strike)[0]
    assert story.cause is Cause.NUMERICS
    assert (story.layer, story.parameter) == ("2", "2.weight")
    assert story.onset in (AT - 1, AT)


def test_an_infinity_written_into_a_weight_is_dated_and_placed_before_the_loss_shows_it(tmp_path):
    def strike(step, model, _optimizer):
        if step == AT:
            with torch.no_grad():
                model[2].weight[0, 0] = float("inf")

    (story,) = [s for s in recorded(tmp_path, strike) if s.cause is Cause.NUMERICS]
    # The weights of step AT - 1 and AT lie on either side of the write; the loss of step AT is the first NaN.
    assert (story.onset, story.loss_step) == (AT - 1, AT)
    top = story.explanations[0]
    assert top.title == f"the update stopped being finite at step {AT - 1}, first in 2.weight"
    assert top.parameter == "2.weight"
    assert "writes to weights" in top.fixes[0]


def test_a_nan_of_the_loss_is_not_placed_in_a_layer_that_is_only_first_in_the_list(tmp_path):
    def strike(step, model, _optimizer):
        if step == AT:
            model.register_forward_hook(lambda _m, _i, out: out * float("nan"))

    (story,) = [s for s in recorded(tmp_path, strike) if s.cause is Cause.NUMERICS]
    top = story.explanations[0]
    assert (top.layer, top.parameter) == (None, None)
    assert top.title == f"the loss stopped being finite at step {AT}"
