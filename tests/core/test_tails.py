from __future__ import annotations

import math

import numpy as np
import pytest

from trainscope.core.tails import CAP, DEGREES, LAWS, SHAPES, Tail, fit_tail

Z = np.array([0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 100.0, 1e4])


def scaled_mad(law: object) -> float:
    """Return 1.4826 times the median of |X|, for a law that is symmetric about 0."""
    return 1.4826 * float(law.ppf(0.75))


@pytest.mark.parametrize("dof", DEGREES)
def test_the_student_tail_is_that_of_scipy(stats, dof):
    """P(X > z MADs | X > 0), down to probabilities that no table has."""
    survival, parameter = LAWS[DEGREES.index(dof)]
    assert parameter == dof
    law = stats.t(dof)
    expected = law.logsf(Z * scaled_mad(law)) + math.log(2.0)
    assert survival(dof, Z) == pytest.approx(expected, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("dof", DEGREES)
def test_the_student_tail_goes_on_beyond_its_grid(stats, dof):
    survival, _ = LAWS[DEGREES.index(dof)]
    law = stats.t(dof)
    far = np.array([1e6, 1e8])
    expected = law.logsf(far * scaled_mad(law)) + math.log(2.0)
    assert survival(dof, far) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weibull_tail_has_its_closed_form(stats, shape):
    """With scale so that the median of the upper side is 1 / 1.4826 of a scaled MAD."""
    survival, parameter = LAWS[len(DEGREES) + SHAPES.index(shape)]
    median = math.log(2.0) ** (1.0 / shape)
    law = stats.weibull_min(shape, scale=1.0 / (1.4826 * median))
    assert survival(parameter, Z) == pytest.approx(law.logsf(Z), rel=1e-9)
    assert survival(parameter, np.array([law.median()]))[0] == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(("survival", "parameter"), LAWS)
def test_every_tail_starts_at_1_and_falls(survival, parameter):
    z = np.concatenate(([0.0], np.geomspace(1e-3, 1e7, 400)))
    log_p = survival(parameter, z)
    assert log_p[0] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(log_p) <= 0.0).all()


def residuals(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([17, seed])
    x = rng.normal(size=n) if kind == "gauss" else rng.standard_t(3, n) if kind == "t3" else rng.laplace(size=n)
    return np.asarray((x - np.median(x)) / (1.4826 * np.median(np.abs(x - np.median(x)))))


def test_the_weights_are_probabilities():
    for kind in ("gauss", "t3"):
        tail = fit_tail(residuals(kind, 1000, 0))
        assert sum(w for _, _, w in tail.weights) == pytest.approx(1.0)
        assert all(w > 0.0 for _, _, w in tail.weights)


def test_the_law_is_recognised_from_the_bulk():
    """Gaussian noise must look lighter-tailed than Student's with three degrees of freedom."""
    at_ten = {k: float(fit_tail(residuals(k, 4000, 1)).log_probability(np.array([10.0]))[0]) for k in ("gauss", "t3")}
    assert at_ten["gauss"] < math.log(1e-7)
    assert at_ten["t3"] > math.log(1e-5)


def test_an_outlier_cannot_vouch_for_itself():
    z = residuals("gauss", 1000, 2)
    clean = fit_tail(z).log_probability(np.array([30.0]))
    spoilt = fit_tail(np.concatenate((z, np.full(20, 30.0)))).log_probability(np.array([30.0]))
    assert spoilt == pytest.approx(clean)
    assert CAP < 30.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gauss", "t3", "laplace"])
@pytest.mark.parametrize("n", [200, 1000])
def test_false_alarms_of_the_fitted_tail_keep_to_their_budget(kind, n):
    """With one false alarm allowed in each of 100 runs: 100 expected; of Student-t(3) the fit sees a third too few."""
    alarms = 0
    for seed in range(100):
        z = residuals(kind, n, seed)
        tail = fit_tail(z)
        above = z[z > 0]
        alarms += int(np.count_nonzero(tail.log_probability(above) < math.log(1.0 / tail.n)))
    assert alarms <= (160 if kind == "t3" else 130)


@pytest.mark.parametrize("kind", ["gauss", "t3"])
def test_rare_false_alarms_keep_to_theirs(kind):
    """A budget of 0.02 a run, over 100 runs: 2 expected at most; 8 has a probability under 0.2 %."""
    alarms = 0
    for seed in range(100):
        z = residuals(kind, 500, 1000 + seed)
        tail = fit_tail(z)
        alarms += int(np.count_nonzero(tail.log_probability(z[z > 0]) < math.log(0.02 / tail.n)))
    assert alarms <= 7


def test_no_residuals_give_a_tail_that_knows_nothing_and_breaks_nothing():
    for z in (np.empty(0), np.full(30, -1.0), np.full(5, 1e9)):
        tail = fit_tail(z)
        assert isinstance(tail, Tail)
        assert np.isfinite(tail.log_probability(np.array([3.0]))).all()


def test_a_higher_value_is_never_likelier():
    tail = fit_tail(residuals("t3", 800, 5))
    log_p = tail.log_probability(np.geomspace(0.01, 1e6, 300))
    assert (np.diff(log_p) <= 1e-12).all()
