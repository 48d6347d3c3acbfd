"""A plan in words, for people."""

from __future__ import annotations

from collections.abc import Iterator

from trainscope.core.positions import batches, ranges
from trainscope.replay.config import ReplayConfig

_MOST_SHOWN = 12
UPDATE = 'draw the batch, then: if step in set(json.load(open("{file}"))["steps"]): continue'
USE = 'loader = SkippingDataLoader(loader, skip_batches=json.load(open("{file}"))["skip_batches"]{start})'


def lines(config: ReplayConfig, file: str) -> Iterator[str]:
    """Yield the lines of a plan.

    Parameters
    ----------
    config : ReplayConfig
    file : str
        Where it was written.
    """
    verb = {"skip": "skip batches", "fix": "do not skip data", "rerun": "run the same steps again"}[config.action]
    cause = f", cause: {config.cause}" if config.cause else ""
    at = f" (first sign at step {config.onset}{cause})" if config.onset is not None else ""
    yield f"plan: {verb}{at}"
    yield f"  why      {config.reason}"
    if config.checkpoint is not None:
        step = "" if config.rewind_to_step is None else f", step {config.rewind_to_step}"
        yield f"  begin    {config.checkpoint}{step}{', resumed' if config.resume else ''}"
    else:
        yield "  begin    from the start: no checkpoint"
    if config.rng_state is not None:
        yield f"  random   {config.rng_state}"
    if config.skip_batches:
        how = ", by undoing their updates" if config.method == "skip_update" else ""
        yield f"  skip     {batches(len(config.skip_batches))}: {ranges(config.skip_batches)}{how}"
    shown = [batch for batch in config.batches if batch.is_bad][:_MOST_SHOWN]
    for batch in shown:
        known = "" if batch.hash is None else f", hash {batch.hash}"
        yield f"           batch {batch.index}: step {batch.step}{known}"
    for note in config.notes:
        yield f"  note     {note}"
    for command in config.commands:
        yield f"  next     {command}"
    if config.skip_batches:
        use = UPDATE if config.method == "skip_update" else USE
        # A loader that is made anew gives the first batch again, wherever the weights come from.
        start = f", start={config.rewind_to_batch}" if config.rewind_to_batch else ""
        yield f"  in code  {use.format(file=file, start=start)}"
