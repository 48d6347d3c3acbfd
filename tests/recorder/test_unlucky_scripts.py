"""What scripts do that nobody planned for: the training goes on, and what is recorded of it is right."""

from __future__ import annotations

import json
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from .conftest import batch_of, columns, loss_of, make_training  # noqa: E402

pytestmark = pytest.mark.slow


def test_a_default_device_that_is_not_the_host_changes_nothing_that_is_recorded(scope_of, tmp_path):
    found = []
    for name, device in (("plain", None), ("other", "meta")):
        model, optimizer = make_training()
        batches = [batch_of(step) for step in range(14)]
        settings = {"activation_metrics_every_n_steps": 1, "histogram_every_n_steps": 3, "rng_every_n_steps": 5}
        torch.set_default_device(device)
        try:
            with scope_of(model, optimizer, run_name=name, **settings) as scope:
                for batch in batches:
                    optimizer.zero_grad()
                    loss = loss_of(model, batch)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                    scope.step(loss)
                    optimizer.step()
            assert scope.faults == {}
        finally:
            torch.set_default_device(None)
        rows = columns(tmp_path / name / "global.arrow")
        layers = [columns(path) for path in sorted((tmp_path / name / "layers").iterdir())]
        timed = ("wall_time", "step_time_ms", "cpu_memory_mb", "cuda_memory_mb")
        found.append(repr(({k: v for k, v in rows.items() if k not in timed}, layers)))
    assert found[0] == found[1]


class Attending(nn.Module):
    """Attention and a head; `interrupted` stands for the one who presses Ctrl-C."""

    def __init__(self):
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 1)
        self.interrupted = False

    def forward(self, x):
        found, _ = self.attention(x, x, x, need_weights=False)
        if self.interrupted:
            raise KeyboardInterrupt
        return self.head(found)


def test_after_an_interrupt_in_a_forward_the_next_steps_are_recorded_like_those_before(scope_of, tmp_path):
    model = Attending()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    fused = nn.functional.scaled_dot_product_attention
    with scope_of(model, optimizer, activation_metrics_every_n_steps=1) as scope:
        for step in range(6):
            model.interrupted = step == 3
            optimizer.zero_grad()
            try:
                loss = model(torch.randn(2, 5, 8)).square().mean()
            except KeyboardInterrupt:
                loss = torch.zeros((), requires_grad=True)
            loss.backward()
            scope.step(loss)
            assert nn.functional.scaled_dot_product_attention is fused
    assert columns(tmp_path / "run" / "global.arrow")["micro_batches"] == [1] * 6
    assert None not in columns(tmp_path / "run" / "layers" / "attention.in_proj_weight.arrow")["attn_entropy"][4:]


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.weight


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.choice = nn.Linear(8, 4)

    def forward(self, x):
        return self.choice(x).topk(4)


class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.router, self.head = Scale(), Router(), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.scale(x)) + self.router(x).values.sum()


def test_a_graph_that_fx_traces_is_the_one_without_the_recorder(scope_of, tmp_path):
    model = Routed()
    before = str(torch.fx.symbolic_trace(model).graph)
    with scope_of(model, torch.optim.SGD(model.parameters(), lr=0.01), activation_metrics_every_n_steps=1) as scope:
        assert str(torch.fx.symbolic_trace(model).graph) == before
        model(torch.randn(3, 8)).sum().backward()
        scope.step(1.0)
    # What topk returns has a field called values, and is no mapping.
    assert scope.faults == {}
    assert columns(tmp_path / "run" / "moe.arrow")["block"] == ["router"]


def test_a_step_number_that_every_micro_batch_has_is_written_once(scope_of, training, tmp_path):
    with scope_of(*training) as scope:
        for call in range(120):
            scope.step(500.0 - call, step=call // 4)
    rows = columns(tmp_path / "run" / "global.arrow")
    assert rows["step"] == list(range(30))
    assert rows["loss"] == [500.0 - call for call in range(3, 120, 4)]
    # Each rewind reads and writes the files again: the more of them, the slower the training.
    assert json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))["rewinds"] == []


def test_a_spike_of_a_step_that_comes_again_leaves_its_window(scope_of, training, tmp_path):
    with scope_of(*training) as scope:
        for call in range(80):
            spike = scope.step(float("nan") if call == 41 else 1.0, step=call // 4)
            assert (spike is not None) == (call == 41)
    assert list((tmp_path / "run" / "spikes").glob("rewound-*/spike_step_10.arrow"))
    assert columns(tmp_path / "run" / "global.arrow")["step"] == list(range(20))


class Bare(nn.Module):
    """Calls fused attention itself, in no module of a name."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(nn.functional.scaled_dot_product_attention(x, x, x))


def test_what_the_loop_deletes_is_gone_at_once(scope_of):
    def train(model, scope):
        for _ in range(3):
            large = torch.zeros(8)
            gone = weakref.ref(large)
            model(torch.randn(2, 5, 8)).sum().backward()
            scope.step(1.0)
            del large
            assert gone() is None

    model = Bare()
    with scope_of(model, torch.optim.SGD(model.parameters(), lr=0.1), activation_metrics_every_n_steps=1) as scope:
        train(model, scope)
        assert scope.faults == {}
