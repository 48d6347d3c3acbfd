"""What else happens to a model while it is recorded: the training is the same, and what is recorded is right."""

from __future__ import annotations

import contextlib
import copy
import itertools
import logging
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
from torch import nn  # noqa: E402

from trainscope.probe.boundary import Hook  # noqa: E402

pytestmark = pytest.mark.slow
STEPS, AT = 10, 5


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.drop, self.last = nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(self.relu(self.first(x))))


def batch(step):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(step))


def train(act, scope_of=None, *, make=Net, optimizer_of=None, **settings):
    """Train, and call ``act(model, optimizer)`` in the middle; return weights, losses, scope and folder."""
    torch.manual_seed(0)
    model = make()
    optimizer = (optimizer_of or (lambda m: torch.optim.AdamW(m.parameters(), lr=1e-2)))(model)
    scope = None
    if scope_of is not None:
        settings = {"activation_metrics_every_n_steps": 1, "histogram_every_n_steps": 1, **settings}
        scope = scope_of(model, optimizer, **settings).attach()
    path = None if scope is None else scope.session.path
    torch.manual_seed(1)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        if step == AT:
            act(model, optimizer)
        loss = model(batch(step)).square().mean()
        loss.backward()
        if scope is not None:
            scope.step(loss)
        optimizer.step()
        losses.append(loss.item())
    if scope is not None:
        scope.detach()
        assert scope.faults == {}
    return [p.detach().clone() for p in model.parameters()], losses, path


def same_numbers(act, scope_of, **arguments):
    """Train with and without the recorder, see that nothing differs, and return the run's folder."""
    settings = arguments.pop("settings", {})
    weights, losses, _ = train(act, **arguments)
    recorded, its_losses, path = train(act, scope_of, **arguments, **settings)
    assert losses == its_losses
    assert all(torch.equal(a, b) for a, b in zip(weights, recorded, strict=True))
    return path


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


@contextlib.contextmanager
def no_draws():
    with torch.random.fork_rng():
        yield


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


@pytest.mark.filterwarnings("ignore")
def test_a_model_in_torchscript_is_recorded_without_its_inside(scope_of):
    path = same_numbers(lambda *_: None, scope_of, make=lambda: torch.jit.script(Net()))
    assert len(columns(path / "layers" / "first.weight.arrow")["grad_l2_norm"]) == STEPS


def test_a_layer_that_takes_the_place_of_another_is_recorded_in_its_stead(scope_of):
    def act(model, optimizer):
        with no_draws():
            model.last = nn.Linear(16, 8)
            model.extra = nn.Linear(8, 8)
        optimizer.param_groups[0]["params"][:] = list(model.parameters())

    path = same_numbers(act, scope_of)
    found = columns(path / "layers" / "last.weight.arrow")
    assert None not in found["grad_l2_norm"]
    assert [i for i, std in enumerate(found["act_std"]) if std is None] == [AT]  # its first forward was before the step
    assert abs(found["weight_mean"][AT] - found["weight_mean"][AT - 1]) > 1e-4
    assert all(edges == found["hist_edges"][0] for edges in found["hist_edges"])
    assert columns(path / "layers" / "extra.weight.arrow")["step"] == list(range(AT, STEPS))


def test_a_parameter_group_added_in_the_middle_is_recorded_at_once(scope_of):
    def act(model, optimizer):
        model.late = nn.Linear(2, 2)
        optimizer.add_param_group({"params": list(model.late.parameters()), "lr": 0.5})

    def act_without_draws(model, optimizer):
        with no_draws():
            act(model, optimizer)

    path = same_numbers(act_without_draws, scope_of, settings={"histogram_every_n_steps": 1000})
    assert columns(path / "layers" / "late.weight.arrow")["step"] == list(range(AT, STEPS))
    assert columns(path / "global.arrow")["lr_1"] == [None] * AT + [0.5] * (STEPS - AT)


def test_weights_that_change_their_type_are_followed(scope_of):
    path = same_numbers(lambda model, _: model.double().float(), scope_of)
    norms = columns(path / "layers" / "first.weight.arrow")["weight_l2_norm"]
    assert all(abs(a - b) < 0.5 for a, b in itertools.pairwise(norms))


class Ghost(Net):
    """Has weights without numbers, as before they are loaded, beside whole, scalar, empty and integer ones."""

    def __init__(self) -> None:
        super().__init__()
        self.ghost = nn.Linear(4, 4, device="meta")
        self.scalar = nn.Parameter(torch.tensor(2.0))
        self.empty = nn.Parameter(torch.zeros(0, 8))
        self.places = nn.Parameter(torch.arange(3), requires_grad=False)

    def forward(self, x):
        return torch.cat([super().forward(x) * self.scalar, self.empty * 2])


def test_weights_without_numbers_are_left_out_and_the_others_measured(scope_of):
    def held(model):
        return torch.optim.SGD([p for p in model.parameters() if not p.is_meta and p.requires_grad], lr=0.1)

    torch.manual_seed(0)
    model = Ghost()
    optimizer = held(model)
    scope = scope_of(model, optimizer, activation_metrics_every_n_steps=1, histogram_every_n_steps=1).attach()
    path = scope.session.path
    for step in range(3):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.backward()
        scope.step(loss)
        optimizer.step()
    scope.detach()
    assert scope.faults == {}
    names = {file.stem for file in (path / "layers").iterdir()}
    assert {"scalar", "empty", "first.weight"} <= names
    assert not {"ghost.weight", "places"} & names
    assert columns(path / "layers" / "scalar.arrow")["weight_l2_norm"][0] == pytest.approx(2.0)
    empty = columns(path / "layers" / "empty.arrow")
    assert empty["weight_l2_norm"][0] == 0.0
    assert [empty[name][0] for name in ("weight_mean", "weight_min", "weight_max", "weight_max_abs")] == [None] * 4


class OnMeta(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8, device="meta")

    def forward(self, x):
        return self.layer(x.to("meta"))


def test_a_model_without_any_number_has_its_loss_recorded(scope_of):
    model = OnMeta()
    scope = scope_of(model, torch.optim.SGD(model.parameters(), lr=0.1)).attach()
    path = scope.session.path
    for step in range(3):
        model(batch(step))
        scope.step(float(step))
    scope.detach()
    assert scope.faults == {}
    assert columns(path / "global.arrow")["loss"] == [0.0, 1.0, 2.0]


class Bare:
    """An optimizer that somebody wrote: groups, no learning rate, no state."""

    def __init__(self, parameters):
        self.param_groups = [{"params": list(parameters)}]

    def zero_grad(self):
        for p in self.param_groups[0]["params"]:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.1)


def test_an_optimizer_without_state_is_recorded(scope_of):
    path = same_numbers(lambda *_: None, scope_of, optimizer_of=lambda model: Bare(model.parameters()))
    assert all(update > 0 for update in columns(path / "layers" / "last.weight.arrow")["update_l2_norm"])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "Transformer", "weight_norm", "spectral_norm", "tied"])
def test_models_of_many_kinds_are_the_same_with_the_recorder(scope_of, kind):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            if kind in ("LSTM", "GRU"):
                self.inner = getattr(nn, kind)(8, 8, num_layers=2, dropout=0.1, bidirectional=True)
            elif kind == "Transformer":
                self.inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
            elif kind == "tied":
                self.inner = nn.Linear(8, 8)
                self.again = nn.ModuleList([self.inner, self.inner])
            else:
                self.inner = getattr(nn.utils.parametrizations, kind)(nn.Linear(8, 8))

        def forward(self, x):
            if kind == "Transformer":
                return self.inner(x.unsqueeze(0), x.unsqueeze(0))
            out = self.inner(x)
            return out[0] if isinstance(out, tuple) else self.again[1](out) if kind == "tied" else out

    path = same_numbers(lambda *_: None, scope_of, make=Wrapped)
    layers = [columns(file) for file in (path / "layers").iterdir()]
    assert any(value is not None for layer in layers for value in layer["act_std"])
    measured = [layer for layer in layers if layer["weight_l2_norm"][0] is not None]
    assert len(measured) == len(list(Wrapped().parameters()))


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


def test_a_step_number_that_goes_back_is_told_once(scope_of, training, caplog):
    scope = scope_of(*training).attach()
    path = scope.session.path
    with caplog.at_level(logging.WARNING, "trainscope"):
        for step in (0, 1, 2, 0, 1, 2, 0, 1):
            scope.step(1.0, step=step)
    scope.detach()
    assert [r.getMessage() for r in caplog.records] == [
        "step 0 comes after step 2: what was recorded from step 0 on is replaced "
        "(a step number must go on over the whole training)"
    ]
    assert columns(path / "global.arrow")["step"] == [0, 1]
