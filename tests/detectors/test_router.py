from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainscope.core.finding import Severity

from .smoke_runs import STEPS, LayersInMemory, found, ones, single, smoke_run

ID = "router"


def test_a_router_without_a_gradient_is_found():
    assert single(ID, smoke_run({"smoke/router_gradient": np.zeros(STEPS)})).title == "Router without gradient"


def test_a_load_that_stays_concentrated_is_found():
    run = smoke_run({"smoke/router_load_entropy": np.full(STEPS, 0.3)})
    assert single(ID, run).title == "Experts unevenly used"


def test_concentration_in_the_beginning_is_normal():
    assert found(ID, smoke_run({"smoke/router_load_entropy": 0.95 - ones(0, 60, 0.6)})) == []


def counted(counted: np.ndarray, evaluated: np.ndarray | float = 0.0, drops: float = 0.0):
    """Routers that chose 64 experts a step, and what their counters say."""
    return smoke_run(
        {
            "smoke/experts_counted": counted,
            "smoke/experts_chosen": np.full(STEPS, 64.0),
            "smoke/experts_chosen_in_evaluation": np.broadcast_to(evaluated, STEPS),
            "smoke/experts_may_drop": np.full(STEPS, drops),
        }
    )


def test_counters_that_add_up_are_right():
    assert found(ID, counted(np.full(STEPS, 64.0))) == []


def test_tokens_that_are_counted_twice_are_found():
    one = single(ID, counted(np.full(STEPS, 128.0)))
    assert "2 times as many as were chosen, at 150 of 150 steps" in one.message


def test_tokens_of_evaluation_in_the_counters_are_found():
    evaluation = ones(20, 21, 32.0)
    one = single(ID, counted(64.0 + evaluation, evaluation))
    assert "those of evaluation among them, at 1 of 150 steps" in one.message


def test_a_declared_capacity_may_drop_tokens_but_not_invent_them():
    assert found(ID, counted(np.full(STEPS, 60.0), drops=1.0)) == []
    assert found(ID, counted(np.full(STEPS, 60.0)))
    assert found(ID, counted(np.full(STEPS, 70.0), drops=1.0))


def test_moving_averages_are_no_counts():
    assert found(ID, counted(np.full(STEPS, 12.7))) == []


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of routers' experts, one row a step from step 0 on."""

    values: dict[str, np.ndarray]

    def blocks(self) -> tuple[str, ...]:
        return tuple(self.values)

    def shares(self, block: str) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self.values[block])), self.values[block]


def routed(*, series: dict[str, object] | None = None, layers: object = None, **blocks: np.ndarray):
    shares = {name.replace("_", "."): value / value.sum(axis=1, keepdims=True) for name, value in blocks.items()}
    return replace(smoke_run(series), shares=Shares(shares), layers=layers)


def even(steps: int = 300, experts: int = 8) -> np.ndarray:
    return 1.0 + 0.2 * np.random.default_rng(2).random((steps, experts))


def with_expert(factor: float, first: int = 0, last: int = 300, expert: int = 1) -> np.ndarray:
    shares = even()
    shares[first:last, expert] *= factor
    return shares


def test_even_loads_are_right():
    assert found(ID, routed(a_router=even(), b_router=even())) == []


def test_a_load_concentrated_at_the_end_is_an_error_that_names_the_router():
    finding = single(ID, routed(a_router=even(), b_router=with_expert(60.0, 150)))
    assert (finding.severity, finding.title) == (Severity.ERROR, "Experts unevenly used")
    assert finding.layer == "b.router"


def test_a_load_that_spread_again_is_information():
    finding = single(ID, routed(a_router=with_expert(60.0, 0, 150)))
    assert (finding.severity, finding.title) == (Severity.INFO, "Experts were unevenly used for a while")
    assert finding.start_step == 60


def test_concentration_in_the_first_steps_is_normal():
    assert found(ID, routed(a_router=with_expert(60.0, 0, 60))) == []


def test_experts_without_tokens_are_a_warning():
    finding = single(ID, routed(a_router=with_expert(0.01, 50)))
    assert (finding.severity, finding.title) == (Severity.WARNING, "Experts get no tokens")
    assert "one of 8 experts (number 1)" in finding.message
    assert finding.start_step == 100


def test_an_expert_with_a_third_of_its_share_is_healthy():
    assert found(ID, routed(a_router=with_expert(0.3))) == []


def test_what_one_router_shows_is_one_finding():
    shares = with_expert(200.0, 50)
    finding = single(ID, routed(a_router=shares, b_router=shares))
    assert finding.severity is Severity.ERROR
    assert "of a fair share" in finding.message
    assert finding.message.endswith("Of the other routers 1 is wrong too.")


def logits(spread: float, low: float, high: float):
    values = {"act_std": spread, "act_min": low, "act_max": high}
    return LayersInMemory({("a.router.weight", name): np.full(60, value) for name, value in values.items()})


def test_a_router_that_is_sure_of_itself_is_saturated():
    finding = single(ID, routed(a_router=even(), layers=logits(12.0, -30.0, 30.0)))
    assert (finding.severity, finding.title) == (Severity.WARNING, "Router is saturated")


def test_small_logits_and_shares_are_not_saturated():
    assert found(ID, routed(a_router=even(), layers=logits(0.3, -1.0, 1.0))) == []
    assert found(ID, routed(a_router=even(), layers=logits(12.0, 0.0, 1.0))) == []


def test_slots_of_a_memory_may_be_few():
    assert found(ID, routed(a_addressor=with_expert(60.0))) == []


def test_a_recording_without_smoke_facts_is_judged_too():
    run = routed(a_router=with_expert(60.0, 150))
    assert single(ID, replace(run, config={}, series={})).title == "Experts unevenly used"


def balance(loss: object):
    task = 2.0 + 0.1 * np.random.default_rng(0).random(300)
    return {"smoke/cross_entropy": task, "smoke/objective": np.float32(task) + np.float32(loss)}


def test_a_balance_loss_that_does_not_see_the_load_is_found():
    moving = with_expert(3.0, 100, 200)
    finding = single(ID, routed(series=balance(0.02), a_router=moving))
    assert (finding.severity, finding.title) == (Severity.WARNING, "Balance loss is constant")


def test_a_balance_loss_that_moves_or_has_nothing_to_see_is_right():
    moving = with_expert(3.0, 100, 200)
    assert found(ID, routed(series=balance(np.linspace(0.02, 0.022, 300)), a_router=moving)) == []
    assert found(ID, routed(series=balance(0.02), a_router=even())) == []
    assert found(ID, routed(series=balance(0.0), a_router=moving)) == []
