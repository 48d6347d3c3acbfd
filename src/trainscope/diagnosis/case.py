"""One judged run as the comparisons of many runs see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Skipped
from trainscope.diagnosis.signs import Stage, Story


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A run, what was found in it, and the story of it."""

    run: Run
    findings: tuple[Finding, ...] = ()
    stories: tuple[Story, ...] = ()
    """By onset."""
    judged: tuple[str, ...] = ()
    """Detectors that ran."""
    skipped: tuple[Skipped, ...] = ()
    """Detectors that had nothing to judge, and why."""

    @property
    def grave(self) -> tuple[Finding, ...]:
        """Findings of warning or error."""
        return tuple(f for f in self.findings if f.severity >= Severity.WARNING)

    @property
    def is_stable(self) -> bool:
        """Whether the run was judged and nothing at or above warning was found."""
        return bool(self.judged) and not self.grave

    @property
    def main(self) -> Story | None:
        """The story that matters: one that the loss shows, of the worst finding, the earliest."""
        return main_story(self.stories, self.findings)

    @property
    def onset(self) -> int | None:
        """First step of the trouble, None where it has none or no step."""
        if self.main is not None:
            return self.main.onset
        return min((f.start_step for f in self.grave if f.start_step is not None), default=None)


def main_story(stories: Sequence[Story], findings: Sequence[Finding]) -> Story | None:
    """Return the story that matters: one that the loss shows, of the worst finding, the earliest; None of none."""
    return min(stories, key=lambda s: (not _shows_in_loss(s), -severity_of(s, findings), s.onset), default=None)


def severity_of(story: Story, findings: Sequence[Finding]) -> Severity:
    """Return the severity of the worst finding that a story tells of."""
    told = {sign.detector for sign in story.signs}
    return max((f.severity for f in findings if f.detector in told), default=Severity.INFO)


def _shows_in_loss(story: Story) -> bool:
    # A lasting symptom says no step, so its story has no `loss_step`; the loss shows it all the same.
    return any(sign.stage is Stage.LOSS for sign in story.signs)
