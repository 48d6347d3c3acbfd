"""A model that is copied, saved, scripted, traced or forked while it is recorded: none of it is training."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import columns  # noqa: E402

from trainscope.probe.boundary import Hook  # noqa: E402

from .odd import STEPS, batch, no_draws, same_numbers  # noqa: E402

pytestmark = pytest.mark.slow


def hooks_of(model):
    tables = [table for m in model.modules() for table in (m._forward_hooks, m._forward_pre_hooks)]
    return [hook for table in tables for hook in table.values()]


def test_a_copy_of_the_model_is_not_recorded(scope_of):
    """As an average of the weights is made, and used in training mode."""
    copies = []

    def act(model, _optimizer):
        copies.append(copy.deepcopy(model))
        with torch.random.fork_rng():
            copies[-1](torch.full((4, 8), 1e6))

    path = same_numbers(act, scope_of)
    assert not any(isinstance(hook, Hook) for hook in hooks_of(copies[-1]))
    assert max(columns(path / "layers" / "first.weight.arrow")["act_max"]) < 100
    assert columns(path / "global.arrow")["micro_batches"] == [1] * STEPS


def test_a_model_is_pickled_whole_and_loads_where_nothing_of_ours_is(scope_of, tmp_path):
    def act(model, _optimizer):
        torch.save(model, tmp_path / "model.pt")
        (tmp_path / "model.pkl").write_bytes(pickle.dumps(model.last))

    same_numbers(act, scope_of)
    assert b"trainscope" not in (tmp_path / "model.pkl").read_bytes()
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert loaded(batch(0)).shape == (4, 8)
    assert not any(isinstance(hook, Hook) for hook in hooks_of(loaded))


@pytest.mark.filterwarnings("ignore")
def test_a_model_is_scripted_and_keeps_its_hooks(scope_of, tmp_path):
    before = []

    def act(model, _optimizer):
        hooks = hooks_of(model)
        torch.jit.script(model).save(tmp_path / "scripted.pt")
        torch.jit.script(Plain(2))  # not a module, and its names are those of the caller's frame
        assert hooks_of(model) == hooks
        before.append(len(hooks))

    path = same_numbers(act, scope_of)
    assert before[1] > before[0] == 0
    assert torch.jit.load(tmp_path / "scripted.pt")(batch(0)).shape == (4, 8)
    assert None not in columns(path / "layers" / "first.weight.arrow")["act_std"]


class Plain:
    def __init__(self, x: int):
        self.x = x


def traced(model):
    torch.jit.trace(model, batch(0), check_trace=False)


def exported(model):
    torch.export.export(model, (batch(0),))
    # Where something was compiled attention is not watched: the tests after this one must not notice.
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def per_example(model):
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(w, x):
        return torch.func.functional_call(model, w, (x,)).sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0), randomness="different")
    each(weights, torch.full((4, 1, 8), 1e6))


@pytest.mark.parametrize("look", [traced, exported, per_example, torch.fx.symbolic_trace])
def test_a_model_that_is_traced_exported_or_transformed_is_not_training(scope_of, look):
    def act(model, _optimizer):
        with no_draws(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)  # torch.jit is old; a TracerWarning is ours
            look(model)

    path = same_numbers(act, scope_of)
    assert max(columns(path / "layers" / "first.weight.arrow")["act_max"]) < 100
    assert columns(path / "global.arrow")["micro_batches"] == [1] * STEPS


FORKING = """
    import os, sys, torch
    sys.path.insert(0, {root!r})
    from tests.recorder.conftest import batch_of, loss_of, make_training
    from trainscope import TrainScope, TrainScopeConfig
    model, optimizer = make_training()
    scope = TrainScope(model, optimizer, TrainScopeConfig(run_dir={run_dir!r}, run_name="run")).attach()
    for step in range(25):
        loss = loss_of(model, batch_of(step))
        loss.backward()
        scope.step(loss)
        optimizer.step()
        if step in (7, 12):
            if os.fork() == 0:
                if step == 12:
                    scope.step(loss)
                    scope.detach()
                sys.exit(0)
            os.wait()
    assert '"closed": false' in open({run_dir!r} + "/run/manifest.json").read()
    scope.detach()
    assert scope.faults == {{}}, scope.faults
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parents_run_alone(tmp_path):
    root = str(Path(__file__).resolve().parents[2])
    script = textwrap.dedent(FORKING).format(root=root, run_dir=str(tmp_path))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for file in ("global.arrow", "layers/head.weight.arrow"):
        assert columns(tmp_path / "run" / file)["step"] == list(range(25))
