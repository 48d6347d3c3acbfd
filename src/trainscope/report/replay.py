"""From a plan and its proof to the parts of the report document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.replay.config import ReplayConfig
from trainscope.replay.proof import Proof
from trainscope.report.document import Document
from trainscope.report.number import number
from trainscope.report.pipeline import Analysis, analyze_runs
from trainscope.report.replay_document import ProofRow, Replay, ReplayProof
from trainscope.report.text import well_formed


def replay_entry(config: ReplayConfig, path: str | None, proof: Proof | None = None) -> Replay:
    """Return what the document says of a plan."""
    return Replay(
        skip_batches=config.skip_batches,
        path=path,
        action=config.action,
        reason=well_formed(config.reason),
        cause=config.cause,
        checkpoint=None if config.checkpoint is None else well_formed(config.checkpoint),
        rewind_to_step=config.rewind_to_step,
        proof=None if proof is None else _proof(proof),
    )


def with_replay(analysis: Analysis, plans: Mapping[str, Replay]) -> Analysis:
    """Return an analysis whose runs, by id, have their plans in the document."""
    document = analysis.document
    runs = [run.model_copy(update={"replay": plans[run.id]}) if run.id in plans else run for run in document.runs]
    return replace(analysis, document=document.model_copy(update={"runs": runs}))


def with_proof(run: Run, settings: Settings, config: ReplayConfig, proof: Proof) -> Document:
    """Return the document of a replayed run, with what it proves."""
    analysis = analyze_runs([run], settings)
    entry = replay_entry(config, None, proof)
    return with_replay(analysis, {one.id: entry for one in analysis.document.runs}).document


def _proof(proof: Proof) -> ReplayProof:
    return ReplayProof.model_validate(
        {
            "verdict": str(proof.verdict),
            "reason": well_formed(proof.reason),
            "comparisons": [
                ProofRow(
                    metric=row.metric,
                    what=row.what,
                    original=None if row.original is None else number(row.original),
                    replay=None if row.replay is None else number(row.replay),
                )
                for row in proof.rows
            ],
            "notes": [well_formed(note) for note in proof.notes],
        }
    )
