"""What a smoke run records: every series and every fact, with its meaning and unit.

One table for all who read or write them. A smoke run is an ordinary run directory, one folder a rank
(``smoke``, or ``smoke_rank0``, ``smoke_rank1``, ...), so its per-step values are ``Run.series``, its facts
``Run.config`` and its per-parameter statistics ``Run.layers``.

Steps are counted from 0. A step is one round of optimizer steps: with several optimizers it ends when each of them
has stepped, or when one is about to step again. A step that a ``GradScaler`` refuses counts, and has
``amp/step_skipped`` = 1.

Hashes are CRC-32 numbers (below 2**32, exact as float64): equal hashes stand for equal bytes, different ones prove a
difference. A value that does not exist (no clipping at this step) is a gap in its series.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainscope.core.vocabulary import BATCH
from trainscope.smoke.facts import CONFIG, Field

__all__ = ["CONFIG", "FACTS_FILE", "LAYER_METRICS", "RUN_NAME", "SERIES", "Field"]

RUN_NAME = "smoke"
"""Folder of the run inside ``--out``; ranks of a distributed training get ``_rank<N>``."""
FACTS_FILE = "smoke.json"
"""Beside ``meta.json``: the facts again, unflattened, with all lists in full."""
OBJECTIVES = tuple(f"smoke/objective_{place}" for place in range(4))
"""Of as many optimizers as are told apart."""

SERIES: Mapping[str, Field] = {
    # What every recorded run has.
    "train/loss": Field(
        "as the objective",
        "mean raw loss over the micro-batches: the value before any division by their number that autograd "
        "shows, before the GradScaler; summed over several optimizers",
    ),
    "train/grad_norm": Field("1", "global L2 norm of the gradient before clipping, loss scale taken out"),
    "train/grad_norm_after_clip": Field("1", "the same as the optimizer got it; there at every step, clipped or not"),
    "learning_rate": Field("1", "of the first parameter group of the first optimizer, as the step used it"),
    "train/step_time": Field("s", "wall time from step to step, without the recorder's own"),
    "optimizer/update_norm": Field("1", "L2 norm of the change of all weights by this step"),
    "optimizer/m_norm": Field("1", "L2 norm of all first moments (Adam) or momentum buffers (SGD) after the step"),
    "optimizer/v_norm": Field("1", "L2 norm of all second moments after the step"),
    "model/weight_norm": Field("1", "L2 norm of all watched weights before the step"),
    "memory/cpu_mb": Field("MiB", "resident memory of the process at the end of the step"),
    "memory/cuda_mb": Field("MiB", "memory held for tensors on all CUDA devices"),
    "amp/grad_scale": Field("1", "scale of the GradScaler"),
    "amp/step_skipped": Field("0 or 1", "the GradScaler refused the step"),
    "micro_batches": Field("1", "backward calls of the step that started from a loss"),
    # Time and memory.
    "train/cpu_step_time": Field(
        "s",
        "CPU time of the process from step to step, all threads, loader included, without the recorder's "
        "own; data loader workers are other processes and not in it",
    ),
    "train/worker_cpu_time": Field(
        "s",
        "CPU time of all child processes since the step before: the data loaders' workers; in clock ticks (mostly "
        "10 ms), and only on systems with /proc",
    ),
    "smoke/pace": Field("s", "CPU time of a fixed piece of work beside the step: how fast the processor is now"),
    "memory/peak_mb": Field("MiB", "highest resident memory so far, without mapped files"),
    "memory/cuda_peak_mb": Field("MiB", "highest memory held for tensors on all CUDA devices so far"),
    "memory/live_graphs": Field(
        "1",
        "autograd graphs, of the sampled forwards and backwards so far, of which some node is still alive "
        "at the end of the step; a healthy training has 0 to 3, and a number that grows is a leak",
    ),
    # Order of calls.
    "smoke/objective": Field("as the objective", "sum of the losses that backward started from"),
    **{
        name: Field("as the objective", f"the same of optimizer {place} alone, where several step")
        for place, name in enumerate(OBJECTIVES)
    },
    "smoke/backward_calls": Field("1", "calls of backward in the step"),
    "smoke/zero_grad_calls": Field("1", "calls of zero_grad, of optimizers and modules"),
    "smoke/zero_grad_after_backward": Field(
        "1",
        "calls of zero_grad that came after a backward of the step and threw its non-zero gradients away",
    ),
    "smoke/scheduler_steps": Field(
        "1",
        "calls of LRScheduler.step since the step before (not those inside its construction)",
    ),
    "smoke/optimizer_steps": Field("1", "optimizer steps in the round: the number of optimizers that stepped"),
    "smoke/stale_gradients": Field(
        "1",
        "L2 norm of the gradients an optimizer had already stepped with, still there at the first backward "
        "after that step; 0 is healthy",
    ),
    "smoke/clip_calls": Field("1", "calls of clip_grad_norm_ or clip_grad_value_"),
    "smoke/clip_max_norm": Field("1", "max_norm of the last clip_grad_norm_ call"),
    "smoke/clip_norm_before": Field("1", "norm that this call returned"),
    "smoke/clip_backward_calls": Field(
        "1",
        "backward calls of the step before this call; less than smoke/backward_calls: clipped too early",
    ),
    "smoke/clip_scaled": Field("0 or 1", "the gradients still carried the loss scale when they were clipped"),
    # Parameters.
    "smoke/parameters_without_gradient": Field(
        "1", "tensors of the stepping optimizers that require a gradient and whose .grad is None"
    ),
    "smoke/parameters_zero_gradient": Field("1", "tensors of the stepping optimizers whose gradient is exactly 0"),
    "smoke/parameters_unmoved": Field(
        "1",
        "those that require a gradient and that this step left bitwise as they were",
    ),
    "smoke/parameters_nonfinite": Field("1", "tensors whose gradient, as the optimizer got it, holds NaN or infinity"),
    "smoke/weights_nonfinite": Field("1", "weight tensors that hold NaN or infinity before the step"),
    "smoke/optimizers_created": Field("1", "optimizer objects constructed so far"),
    "smoke/optimizer_state_step": Field(
        "1",
        "smallest step counter in the state of the optimizers after the step (Adam and kin); falls when state is lost",
    ),
    "smoke/optimizer_state_lost": Field("1", "tensors, of the few watched, whose own step counter fell in this step"),
    "smoke/optimizer_is_first": Field("0 or 1", "the newest optimizer has weights that none had stepped before it"),
    "smoke/optimizer_state_tensors": Field("1", "tensors of the stepping optimizers that have any state"),
    "smoke/weight_decay": Field("1", "largest weight decay of any parameter group"),
    "smoke/learning_rate_min": Field("1", "smallest learning rate of any parameter group of any stepping optimizer"),
    "smoke/learning_rate_max": Field("1", "largest learning rate of any parameter group of any stepping optimizer"),
    "smoke/buffer_update": Field(
        "1",
        "L2 norm of the change of the floating-point buffers (BatchNorm statistics) since the step before",
    ),
    # Modes.
    "smoke/eval_mode_modules": Field(
        "1",
        "dropout and batch-norm modules that ran in eval mode in the last forward before a backward of the "
        "step; 0 is healthy",
    ),
    "smoke/train_mode_modules": Field("1", "the same in train mode"),
    # Data. -1 never occurs: no data seen is a gap.
    "smoke/batch_hash": Field(
        "hash",
        "batches taken from DataLoaders for this step; without a DataLoader, smoke/input_hash",
    ),
    "smoke/input_hash": Field("hash", "tensors given to the outermost module in the training forwards of the step"),
    "smoke/target_hash": Field(
        "hash",
        "class labels given to cross_entropy or nll_loss in the training forwards; independent of "
        "augmentation and rounding",
    ),
    "smoke/data_order_hash": Field(
        "hash",
        "indices that the sampler of a DataLoader gave for the batches of this step",
    ),
    "smoke/repeated_batch": Field("0 or 1", "smoke/batch_hash occurred at an earlier step of this run"),
    "smoke/rng_hash": Field(
        "hash",
        "state of torch's CPU generator at the end of the step; another value in another run: their random "
        "streams have shifted against each other",
    ),
    "smoke/inputs": Field("1", "numbers that smoke/input_mean is of"),
    "smoke/input_mean": Field("1", "mean of the floating-point inputs to the outermost module in training forwards"),
    "smoke/input_std": Field("1", "standard deviation of the same"),
    "smoke/eval_input_mean": Field(
        "1",
        "mean of the floating-point inputs in forwards without gradient since the step before",
    ),
    "smoke/eval_input_std": Field("1", "standard deviation of the same"),
    "smoke/samples": Field("1", "size of the first dimension of the inputs, added up over the training forwards"),
    # What the batches look like before the forward; of several micro-batches the one farthest from the run's median.
    "batch_index": Field(
        "position",
        "of the step's first batch: batches that the training loader had given before it, over all epochs, batches "
        "that a replay left out included; without a DataLoader, training forwards before it",
    ),
    **{f"batch/{name}": Field(unit, meaning) for name, (unit, meaning) in BATCH.items()},
    # Labels.
    "smoke/cross_entropy": Field(
        "nat",
        "mean cross entropy per label of the largest cross_entropy or nll_loss call of each training "
        "forward, averaged over the step",
    ),
    "smoke/label_entropy": Field(
        "nat",
        "entropy of the label distribution over all steps so far: the loss of a model that knows only how "
        "often each class occurs (the unigram floor)",
    ),
    "smoke/ignored_fraction": Field("1", "share of labels equal to ignore_index"),
    "smoke/eval_cross_entropy": Field(
        "nat",
        "mean cross entropy per label of the calls without gradient or in eval mode after this step and "
        "before the next",
    ),
    "smoke/eval_outputs": Field("1", "numbers that smoke/eval_output_mean is of"),
    "smoke/eval_labels": Field("1", "labels that smoke/eval_cross_entropy is of"),
    "smoke/eval_inputs": Field("1", "numbers that smoke/eval_input_mean is of"),
    "smoke/eval_targets": Field("1", "numbers in the targets that smoke/eval_objective is of"),
    "smoke/eval_output_mean": Field(
        "1",
        "mean of the outermost module's first floating-point output in forwards without gradient since the step before",
    ),
    "smoke/eval_output_std": Field("1", "standard deviation of the same"),
    "smoke/eval_objective": Field(
        "as the losses",
        "mean value of the other losses of torch (mse_loss, huber_loss, binary_cross_entropy, ...) that were called "
        "without gradient after this step and before the next, weighted by the numbers in their targets",
    ),
    # Experts.
    "smoke/router_gradient": Field(
        "1",
        "L2 norm of the gradient, before clipping, of all parameters of routers (modules named router, or "
        "gate beside experts)",
    ),
    "smoke/router_load_entropy": Field(
        "1",
        "entropy of the tokens' spread over experts divided by its maximum, mean over routers; 1 is even. "
        "The shares themselves are Run.shares",
    ),
    "smoke/experts_counted": Field(
        "1",
        "what the experts' own token counters (buffers such as tokens_per_expert beside a router with a declared "
        "top_k) grew by until the optimizer's step, or hold where they are cleared each step; summed over routers",
    ),
    "smoke/experts_chosen": Field("1", "(token, expert) pairs that these routers chose in the training forwards"),
    "smoke/experts_chosen_in_evaluation": Field("1", "the same in other forwards since the step before"),
    "smoke/experts_may_drop": Field("0 or 1", "a capacity is declared beside such a counter: pairs may be dropped"),
    # Attention, every tenth step; where it can be seen.
    "attention/logit_max": Field("1", "largest attention logit of the first training forward of the step"),
    "attention/entropy": Field("nat", "mean entropy of its attention weights over queries, heads and modules"),
    # Ranks; only in the run of rank 0.
    "smoke/rank_same_batch": Field("0 or 1", "every rank trained on the very same batches; absent where not known"),
    "smoke/rank_gradient_spread": Field(
        "1",
        "largest relative difference between ranks of any parameter's gradient norm, as the optimizers got "
        "it; not for sharded parameters",
    ),
    "smoke/rank_weight_spread": Field(
        "1",
        "largest relative difference between ranks of any parameter's weight norm before the step; not for "
        "sharded parameters",
    ),
}
"""Every per-step series a smoke run may have; other columns are not written."""

LAYER_METRICS: Mapping[str, Field] = {
    "grad_l2_norm": Field(
        "1",
        "L2 norm of the gradient before clipping, loss scale taken out; a gap where .grad is None",
    ),
    "weight_l2_norm": Field("1", "L2 norm before the step"),
    "update_l2_norm": Field(
        "1",
        "L2 norm of what the step changed; exactly 0 where it left the tensor bitwise as it was, and never else",
    ),
    "update_ratio": Field("1", "update over weight norm"),
}
"""Columns of ``Run.layers`` for every watched parameter (trainable or not), every step, in the order of the model."""
