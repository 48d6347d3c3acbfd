"""A run against its baseline: the registry of comparers, and the function that runs them.

``COMPARERS`` is the whole registry, in report order. Adding a comparer: one module, one line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainscope.core.errors import ConfigError
from trainscope.core.finding import Finding, Severity
from trainscope.core.metrics import LOSS_KINDS, kind
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings, parse_severity
from trainscope.detectors import Judgement, with_options
from trainscope.detectors.base import Skipped
from trainscope.diagnosis import (
    cost_change,
    data_change,
    eval_change,
    first_difference,
    first_step,
    learning_rate_change,
    length_change,
    paired_loss,
    paired_signals,
    parameter_change,
    provenance,
    setting_change,
)
from trainscope.diagnosis.base import Comparer, Comparison, Pair, align
from trainscope.diagnosis.pairing import pair_with

COMPARERS: tuple[Comparer[Any], ...] = (
    paired_loss.COMPARER,
    eval_change.COMPARER,
    parameter_change.COMPARER,
    first_step.COMPARER,
    paired_signals.COMPARER,
    learning_rate_change.COMPARER,
    setting_change.COMPARER,
    data_change.COMPARER,
    length_change.COMPARER,
    cost_change.COMPARER,
    provenance.COMPARER,
    first_difference.COMPARER,
)
BAND, LEAST_BAND = 0.05, 20
"""Half the width of the band that another seed explains, of a loss or its range; steps to tell it by."""
CURVE = 0.01
"""Relative difference under which two curves are one, at every step of a finding."""
COUNTED = frozenset({"clipping", "non_finite_origin", "optimizer_state", "skipped_batches"})
"""Detectors that count calls or read facts: the metric that they name is where it shows, not what they judge."""
IDS: tuple[str, ...] = tuple(comparer.id for comparer in COMPARERS)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """What the comparers say of one run, and what its baseline's findings are called."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    lines: tuple[Comparison, ...]
    asked: tuple[str, ...]
    """Ids of all comparers that were asked."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A comparer with the user's parameters and severity."""

    comparer: Comparer[Any]
    params: Any
    severity: Severity | None


def configured(settings: Settings) -> tuple[Configured, ...]:
    """Return the comparers to run, with their parameters.

    Raises
    ------
    ConfigError
        If a parameter is unknown, or a value has the wrong type.
    """
    chosen = []
    for comparer in COMPARERS:
        options = dict(settings.detectors.get(comparer.id, {}))
        enabled, raw = options.pop("enabled", True), options.pop("severity", None)
        if not isinstance(enabled, bool):
            raise ConfigError(f"detectors.{comparer.id}.enabled: expected true or false, got {enabled!r}")
        severity = None if raw is None else parse_severity(raw, f"detectors.{comparer.id}.severity")
        params = with_options(comparer.id, comparer.params, comparer.parameters(), options)
        wanted = comparer.id not in settings.ignore and (not settings.select or comparer.id in settings.select)
        if enabled and wanted:
            chosen.append(Configured(comparer, params, severity))
    return tuple(chosen)


def compare_runs(run: Run, baselines: Sequence[Run], settings: Settings) -> Comparisons:
    """Compare one run with its baseline.

    Parameters
    ----------
    run : Run
    baselines : sequence of Run
        At least one; more of other seeds sharpen the seed band.
    settings : Settings
        ``select``, ``ignore`` and ``detectors`` count for comparers too.

    Raises
    ------
    ConfigError
        If a parameter in `settings` is unknown or of the wrong type.
    ValueError
        If there is no baseline.
    """
    pair = pair_with(run, baselines)
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    lines: list[Comparison] = []
    chosen = configured(settings)
    for one in chosen:
        with np.errstate(all="ignore"):
            result = one.comparer.compare(pair, one.params)
        if isinstance(result, Skipped):
            skipped.append(replace(result, detector=one.comparer.id))
            continue
        findings += [f if one.severity is None else replace(f, severity=one.severity) for f in result.findings]
        lines += result.comparisons
    if all(f.severity is Severity.INFO for f in findings):
        # Where two runs part means nothing by itself: dropout, kernels and threads part them too.
        findings = [f for f in findings if f.detector != first_difference.COMPARER.id]
    return Comparisons(tuple(findings), tuple(skipped), tuple(lines), tuple(one.comparer.id for one in chosen))


def same_curve(finding: Finding, run: Run, baselines: Sequence[Run]) -> bool:
    """Tell whether a baseline has the very curve that a finding is about: then it is no news, whatever was said of it.

    A detector's threshold may fall between two curves that differ by rounding. What is counted has no threshold, and
    may leave the curve as it was.
    """
    if finding.detector in COUNTED or finding.metric is None or finding.layer is not None or finding.start_step is None:
        return False
    mine = run.get(finding.metric)
    if mine is None:
        return False
    alike = (_same(mine, base.get(finding.metric), finding) for base in baselines)
    return any(alike) or _in_band(finding, mine, pair_with(run, baselines))


def _same(mine: Series, theirs: Series | None, finding: Finding) -> bool:
    if theirs is None or finding.start_step is None:
        return False
    both = align(mine, theirs)
    end = finding.end_step if finding.end_step is not None else finding.start_step
    window = (both.step >= finding.start_step) & (both.step <= end)
    a, b = both.run[window], both.base[window]
    return bool(len(a)) and bool(np.allclose(a, b, rtol=CURVE, atol=0.0, equal_nan=True))


def _in_band(finding: Finding, mine: Series, pair: Pair) -> bool:
    """Tell whether another seed explains a loss: its typical value, end and top within the band of the baseline's.

    The same shape, over which a detector's threshold may fall either way.
    """
    theirs = pair.base.get(mine.name)
    if pair.pairing.exact or theirs is None or kind(mine.name) not in LOSS_KINDS or finding.start_step is None:
        return False
    both = align(mine, theirs).finite()
    end = finding.end_step if finding.end_step is not None else finding.start_step
    window = (both.step >= finding.start_step) & (both.step <= end)
    if np.count_nonzero(window) < LEAST_BAND:
        return False
    a, b = both.run[window], both.base[window]
    third = max(1, len(a) // 3)
    room = BAND * max(abs(float(np.median(b))), float(np.ptp(both.base)))
    pairs = ((np.median(a), np.median(b)), (np.median(a[-third:]), np.median(b[-third:])), (np.max(a), np.max(b)))
    return all(abs(float(x - y)) <= room for x, y in pairs)


def known_severities(judgements: Sequence[Judgement]) -> Mapping[str, Severity]:
    """Return the fingerprints of the baselines' findings, each with its worst severity."""
    known: dict[str, Severity] = {}
    for judgement in judgements:
        for finding in judgement.findings:
            known[finding.fingerprint] = max(finding.severity, known.get(finding.fingerprint, finding.severity))
    return known
