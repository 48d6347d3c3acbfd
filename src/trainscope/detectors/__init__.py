"""The detectors, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings, check_parameter, parse_severity
from trainscope.detectors import expectation
from trainscope.detectors.base import Detector, Skipped
from trainscope.detectors.engine.aftermath import told_once
from trainscope.detectors.registry import DETECTORS as DETECTORS


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the detectors say of one run."""

    findings: tuple[Finding, ...]
    """Worst first, then by step."""
    skipped: tuple[Skipped, ...]
    """Detectors that had nothing to judge, and why."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A detector with the user's parameters and severity."""

    detector: Detector[Any]
    params: Any
    severity: Severity | None


def by_id(name: str) -> Detector[Any]:
    """Return the detector called `name`.

    Raises
    ------
    ConfigError
        If there is none; suggests the nearest id.
    """
    for detector in DETECTORS:
        if detector.id == name:
            return detector
    raise ConfigError(f"no detector is called {name!r}{did_you_mean(name, [d.id for d in DETECTORS])}")


def configure(settings: Settings, *, others: Collection[str] = ()) -> tuple[Configured, ...]:
    """Return the detectors to run, with their parameters.

    Parameters
    ----------
    settings : Settings
    others : collection of str
        Ids that the settings may name too: those of comparisons with a baseline.

    Raises
    ------
    ConfigError
        If a detector id or a parameter is unknown, or a value has the wrong type.
    """
    for name in (*settings.select, *settings.ignore, *settings.detectors):
        if name not in others:
            by_id(name)
    chosen = []
    for detector in DETECTORS:
        options = dict(settings.detectors.get(detector.id, {}))
        if detector.id == expectation.DETECTOR.id and settings.expect:
            options["expect"] = (*settings.expect, *options.get("expect", ()))
        enabled = options.pop("enabled", True)
        if not isinstance(enabled, bool):
            raise ConfigError(f"detectors.{detector.id}.enabled: expected true or false, got {enabled!r}")
        raw = options.pop("severity", None)
        severity = None if raw is None else parse_severity(raw, f"detectors.{detector.id}.severity")
        params = with_options(detector.id, detector.params, detector.parameters(), options)
        if not enabled and isinstance(params, expectation.Params) and params.expect:
            raise ConfigError(
                f"detectors.expectation.enabled: false, but expect has {len(params.expect)}; remove one of the two"
            )
        if enabled and _wanted(detector, params, settings):
            chosen.append(Configured(detector, params, severity))
    return tuple(chosen)


def _wanted(detector: Detector[Any], params: object, settings: Settings) -> bool:
    """Tell whether to run a detector; what the user expects is always checked, and never where nothing is expected."""
    if isinstance(params, expectation.Params):
        return bool(params.expect)
    return detector.id not in settings.ignore and (not settings.select or detector.id in settings.select)


def with_options(id: str, params: Any, defaults: Mapping[str, Any], options: dict[str, Any]) -> Any:  # noqa: ANN401 - a Params of its own type
    """Return `params` with the user's options put over the defaults.

    Raises
    ------
    ConfigError
        If a parameter is unknown or a value has the wrong type.
    """
    for key, value in options.items():
        where = f"detectors.{id}.{key}"
        if key not in defaults:
            raise ConfigError(f"{where}: no such parameter{did_you_mean(key, [*defaults, 'enabled', 'severity'])}")
        check_parameter(value, defaults[key], where)
    return replace(params, **options)


def judge(run: Run, chosen: tuple[Configured, ...]) -> Judgement:
    """Run the chosen detectors on one run.

    Values near the limit of floats may overflow in a measure; the infinity that follows is below or above every
    threshold, and needs no warning of its own. What one event shows on several metrics is one warning
    (:mod:`trainscope.detectors.engine.aftermath`); a severity that the user asked for stands.
    """
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    asked = {one.detector.id: one.severity for one in chosen if one.severity is not None}
    for one in chosen:
        with np.errstate(all="ignore"):
            result = one.detector.detect(run, one.params)
        if isinstance(result, Skipped):
            skipped.append(replace(result, detector=one.detector.id))
        else:
            findings += result
    findings = [replace(f, severity=asked.get(f.detector, f.severity)) for f in told_once(run, findings)]
    findings.sort(key=lambda f: (-f.severity, f.start_step if f.start_step is not None else -1))
    return Judgement(tuple(findings), tuple(skipped))
