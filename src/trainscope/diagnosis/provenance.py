"""provenance: where and how the two runs were made, and whether they can be compared step by step.

What it finds
    Another platform, device, dtype, torch version, seed or number of processes; other first weights, batches or
    random numbers. None of it is a fault: it is said because the comparison is then against a seed band.
Algorithm
    Exact comparison of recorded facts and hashes. Losses that agree to rounding throughout overrule the hashes: a
    rewritten loader or a rescaled input may give the same training under another identity. Runs that first part by
    rounding, with no setting changed, do not pair where the training amplifies it.
Parameters
    None.
False positives
    None: an information.
Misses
    What a plain log does not say: there only the noise of the two losses tells whether they share their batches.
Reference
    torchtitan#2156, #2157: golden files differ between CUDA and ROCm.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.base import Compared, Comparer, Comparison, Pair
from trainscope.diagnosis.configuration import changed
from trainscope.diagnosis.pairing import environment_differences

SAME = "Record the baseline with the same seed, data and environment for a sharper comparison."


@dataclass(frozen=True, slots=True)
class Params:
    """Nothing to set."""


def compare(pair: Pair, params: Params) -> Compared | Skipped:  # noqa: ARG001 - the comparers' signature
    """Say how the runs pair, and which settings of the training changed."""
    findings = []
    if not pair.pairing.exact:
        findings.append(
            Finding(
                detector="provenance",
                severity=Severity.INFO,
                title="Compared with a seed band",
                message=f"The runs do not pair step by step ({'; '.join(pair.pairing.reasons)}).",
                metric="provenance",
                evidence={"baselines": len(pair.baselines)},
                fixes=_remedies(pair),
            )
        )
    settings = changed(pair.run, pair.base)
    if settings:
        listed = "; ".join(f"{key} {before} -> {now}" for key, before, now in settings[:6])
        more = f" and {len(settings) - 6} more" if len(settings) > 6 else ""
        findings.append(
            Finding(
                detector="provenance",
                severity=Severity.INFO,
                title="Settings changed",
                message=f"Settings of the training differ from the baseline's: {listed}{more}.",
                metric="settings",
                evidence={"settings": len(settings)},
            )
        )
    verdict = "paired" if pair.pairing.exact else "seed band: " + "; ".join(pair.pairing.reasons)
    return Compared(tuple(findings), (Comparison("pairing", verdict),))


def _remedies(pair: Pair) -> tuple[str, ...]:
    """Return what makes the next comparison sharper; where the change itself moved the random numbers no seed does."""
    if environment_differences(pair.run, pair.base) or facts.initial_weights_differ(pair.run, pair.base):
        return (SAME,)
    random = facts.first_difference(pair.run, pair.base, facts.RANDOM)
    batches = facts.first_difference(pair.run, pair.base, facts.BATCH)
    if random is None or (batches is not None and batches < random):
        return (SAME,)
    loader = f"; a torch.Generator of the loader's own would keep the batches of step {batches} on as they were"
    return (
        f"Random numbers are drawn otherwise from step {random} on{'' if batches is None else loader}.",
        "If the change is meant, save a new baseline.",
    )


COMPARER = Comparer("provenance", "Compared with a seed band", ("smoke facts",), Params(), compare)
