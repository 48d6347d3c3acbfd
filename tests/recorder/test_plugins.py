"""The frozen surface for users' own metrics and detectors."""

from __future__ import annotations

import inspect
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of  # noqa: E402

from trainscope import AnomalyDetector, MetricPlugin  # noqa: E402
from trainscope.core.errors import ConfigError  # noqa: E402
from trainscope.readers import recorded  # noqa: E402
from trainscope.readers.source import open_source  # noqa: E402

pytestmark = pytest.mark.slow


class GradRatio(MetricPlugin):
    name: ClassVar[str] = "grad_ratio"

    def compute(self, model, optimizer, step):
        norms = [p.grad.norm().item() for p in model.parameters()]
        return {
            "largest": max(norms),
            "smallest": min(norms),
            "lr": optimizer.param_groups[0]["lr"],
            "at": float(step),
        }


class Broken(MetricPlugin):
    name: ClassVar[str] = "broken"

    def compute(self, model, optimizer, step):
        raise ValueError("a user's bug")


class EveryThird(AnomalyDetector):
    warmup = 0

    def __init__(self):
        self.seen = 0

    def update(self, value):
        self.seen += 1
        return 7.5 if self.seen % 3 == 0 else None


class Evaluation(MetricPlugin):
    name: ClassVar[str] = "eval"

    def compute(self, model, optimizer, step):
        return {} if step % 2 else {"loss": 3.0 - step}


class Nameless(MetricPlugin):
    def compute(self, model, optimizer, step):
        return {}


def record(scope_of, training, steps=4, **settings):
    model, optimizer = training
    scope = scope_of(model, optimizer, **settings).attach()
    spikes = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(step))
        loss.backward()
        spikes.append(scope.step(loss))
        optimizer.step()
    path = scope.session.path
    scope.detach()
    return scope, path, [s for s in spikes if s is not None]


def test_the_surface_is_frozen():
    assert list(inspect.signature(MetricPlugin.compute).parameters) == ["self", "model", "optimizer", "step"]
    assert list(inspect.signature(AnomalyDetector.update).parameters) == ["self", "value"]
    assert MetricPlugin.__abstractmethods__ == {"compute"}
    assert AnomalyDetector.__abstractmethods__ == {"update"}
    assert AnomalyDetector.warmup == 0
    assert MetricPlugin.__annotations__ == {"name": "ClassVar[str]"}


@pytest.mark.parametrize("entry", [GradRatio, GradRatio(), f"{__name__}.GradRatio", f"{__name__}:GradRatio"])
def test_metrics_of_a_plug_in_become_rows(scope_of, training, entry):
    _, path, _ = record(scope_of, training, metric_plugins=[entry])
    rows = columns(path / "plugin_metrics.arrow")
    assert list(rows) == ["step", "plugin", "metric", "value"]
    assert len(rows["step"]) == 16
    assert set(rows["plugin"]) == {"grad_ratio"}
    assert [v for m, v in zip(rows["metric"], rows["value"], strict=True) if m == "at"] == [0, 1, 2, 3]


def test_a_plug_in_called_eval_hands_over_an_evaluation_loss(scope_of, training):
    _, path, _ = record(scope_of, training, metric_plugins=[Evaluation])
    (run,) = recorded.read_runs(open_source(path))
    evaluation = run.get("eval/loss")
    assert (evaluation.step.tolist(), evaluation.value.tolist()) == ([0, 2], [3.0, 1.0])


def test_a_broken_plug_in_costs_its_own_numbers_only(scope_of, training):
    scope, path, _ = record(scope_of, training, metric_plugins=[Broken, GradRatio])
    assert scope.faults == {"plug-in broken: ValueError": 4}
    assert set(columns(path / "plugin_metrics.arrow")["plugin"]) == {"grad_ratio"}


def test_a_detector_of_ones_own_runs_beside_the_chosen_one(scope_of, training):
    _, path, spikes = record(scope_of, training, steps=7, detector_plugins=[f"{__name__}.EveryThird"])
    assert [(s["step"], s["spike_score"], s["detector"]) for s in spikes] == [
        (2, 7.5, "EveryThird"),
        (5, 7.5, "EveryThird"),
    ]
    found = columns(path / "global.arrow")
    assert [s for s in found["spike_score"] if s is not None] == [7.5, 7.5]


@pytest.mark.parametrize(
    ("field", "entry", "reason"),
    [
        ("metric_plugins", "nowhere.Plugin", "cannot be imported"),
        ("metric_plugins", "Plugin", "dotted path"),
        ("metric_plugins", f"{__name__}.EveryThird", "not a MetricPlugin"),
        ("metric_plugins", Nameless, "has no name"),
        ("detector_plugins", f"{__name__}.GradRatio", "not an AnomalyDetector"),
        ("detector_plugins", f"{__name__}.Missing", "cannot be imported"),
    ],
)
def test_a_wrong_plug_in_is_an_error_that_names_field_and_entry(scope_of, training, field, entry, reason):
    with pytest.raises(ConfigError, match=rf"{field}\[0\].*{reason}"):
        scope_of(*training, **{field: [entry]})
