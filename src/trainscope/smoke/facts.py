"""Every fact of a smoke run: its key in ``Run.config``, unit and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One recorded quantity."""

    unit: str
    meaning: str


CONFIG: Mapping[str, Field] = {
    "smoke.steps": Field("1", "steps recorded"),
    "smoke.steps_wanted": Field("1", "--steps"),
    "smoke.seed": Field("1", "--seed, null if not given"),
    "smoke.ended": Field("word", "steps (the wanted number was reached) or script (the script ended by itself)"),
    "smoke.ranks": Field("1", "processes that recorded steps"),
    "smoke.rank": Field("1", "of this run"),
    "smoke.faults": Field("JSON list", "kinds of fault of the recorder itself: a hook named here was switched off"),
    # Model.
    "smoke.model.class": Field("text", "class of the outermost modules"),
    "smoke.model.tensors": Field("1", "distinct parameters, trainable or not"),
    "smoke.model.numel": Field("1", "numbers in them"),
    "smoke.model.trainable_numel": Field("1", "numbers in those that require a gradient"),
    "smoke.model.tied": Field("1", "further names of parameters that have one already"),
    "smoke.model.names_hash": Field("hash", "names and shapes in model order; a renamed module changes it"),
    "smoke.model.shapes_hash": Field(
        "hash",
        "shapes and dtypes of the trainable parameters, sorted; a renamed module does not change it",
    ),
    "smoke.model.initial_hash": Field(
        "hash",
        "bytes of all trainable weights before the first step, independent of names and order",
    ),
    "smoke.model.modules": Field("JSON object", "class name of modules to how many there are"),
    "smoke.model.dropout": Field("JSON list", "distinct dropout probabilities of modules, sorted"),
    "smoke.model.batch_norm_momentum": Field("JSON list", "distinct momenta of batch norms, sorted"),
    "smoke.parameters": Field(
        "JSON list",
        "[name, shape, CRC-32 of the initial bytes, what] in model order; what is trained, frozen "
        "(requires_grad is false) or left out (requires a gradient, no optimizer has it); absent above 4096 "
        "tensors",
    ),
    "smoke.frozen": Field("JSON list", "names that do not require a gradient"),
    "smoke.frozen_used": Field(
        "JSON list",
        "those of them whose module ran before the first step; a parameter of a module with children does not count",
    ),
    "smoke.not_in_optimizer": Field("JSON list", "names that require a gradient and that no optimizer has"),
    "smoke.not_in_optimizer_used": Field("JSON list", "those of them that ever got a gradient"),
    "smoke.never_gradient": Field(
        "JSON list", "names in an optimizer that require a gradient and whose gradient was None at every step"
    ),
    "smoke.never_weighed": Field(
        "names", "vectors whose gradient is never more than the rounding of the others': it cancels out of the loss"
    ),
    "smoke.never_moved": Field(
        "JSON list", "names in an optimizer that require a gradient and that no step changed by one bit"
    ),
    "smoke.eval_mode_modules": Field(
        "JSON list",
        "names of dropout and batch-norm modules that ever ran in eval mode in the last forward before a backward",
    ),
    "smoke.evaluations": Field("1", "forwards of the outermost module that did not train, after the first step"),
    "smoke.evaluations_with_gradient": Field("1", "those of them with gradients on: they build a graph for nothing"),
    "smoke.evaluations_in_train_mode": Field(
        "1", "those of them in which a dropout was on or a batch norm took the statistics of its batch"
    ),
    "smoke.nonfinite_gradients": Field(
        "JSON list",
        "names whose gradient was not finite at the first step where any was, in model order",
    ),
    "smoke.nonfinite_step": Field("1", "first step with a non-finite loss, gradient or weight; null if none"),
    "smoke.nonfinite_operation": Field(
        "text",
        "autograd name of the first operation behind the first loss that is not finite whose values were not finite "
        "or could not be (log of 0, division by 0); null if none",
    ),
    "smoke.nonfinite_module": Field("text", "the module whose parameters are the nearest before it; null if unknown"),
    "smoke.nonfinite_place": Field(
        "word", "input, model or loss (the arithmetic after the model's finite output); null if none or unknown"
    ),
    "smoke.nonfinite_output": Field(
        "JSON object", "of the model's output at that step: shape, finite, low and high; null if none or gone"
    ),
    # Optimizers and schedules; <i> counts from 0 in the order of construction, only those that stepped.
    "smoke.optimizers": Field("1", "optimizers that stepped"),
    "smoke.optimizer<i>.class": Field("text", "class name"),
    "smoke.optimizer<i>.groups": Field("1", "parameter groups"),
    "smoke.optimizer<i>.tensors": Field("1", "parameters"),
    "smoke.optimizer<i>.<option>": Field(
        "any",
        "every scalar option of the first group, and betas as beta1, beta2; with several groups also "
        "<option>.groups, a JSON list where they differ",
    ),
    "smoke.schedulers": Field("1", "schedulers that were stepped"),
    "smoke.scheduler<i>.class": Field("text", "class name"),
    "smoke.scheduler<i>.<option>": Field(
        "any",
        "its scalar attributes (T_max, step_size, gamma, total_steps, ...), milestones as a JSON list; not "
        "its own position",
    ),
    "smoke.scheduler<i>.warmup": Field(
        "1",
        "length of the warm-up in the scheduler's own steps, where it declares one: its class, or the variables of "
        "its function",
    ),
    "smoke.scheduler<i>.horizon": Field("1", "length of the whole schedule, the same way"),
    "smoke.schedulers_unused": Field(
        "JSON list", "class, warmup and horizon of schedulers that were made before the first step and never stepped"
    ),
    "smoke.declared": Field(
        "JSON list",
        "what the script was told: what (total_steps, warmup_steps or epochs), value, name, and source (arguments, "
        "or the trainer that has the setting)",
    ),
    # Data and labels.
    "smoke.data_loader": Field("true or false", "whether batches came from a DataLoader"),
    "smoke.loaders": Field(
        "JSON list",
        "for each DataLoader that was read: samples (that its sampler draws from), batch_size, sampler (its class), "
        "workers, batches (its length), drop_last, training (whether it gave batches where gradients are on), "
        "sequential (whether it asked for 0, 1, 2, ... in order), asked, different and different_early (samples it "
        "asked for, different ones among them, and those in the first half of all that it asked for)",
    ),
    "smoke.training_loader": Field(
        "1",
        "which of the loaders that training reads gave most batches, counted from 0 in the order of the first batch; "
        "batch_index counts its batches; null without a DataLoader, where batch_index counts training forwards",
    ),
    "smoke.skip_batches": Field("JSON list", "positions that --replay asked to leave out; null where it is no replay"),
    "smoke.skip_method": Field(
        "word", "how: drop_batch (drawn from the loader and dropped) or skip_update (trained on, and the update undone)"
    ),
    "smoke.dropped_batches": Field("JSON list", "positions that were left out, in order"),
    "smoke.dropped_hashes": Field("JSON list", "hashes of those batches"),
    "smoke.samples_again": Field(
        "1", "times that one of the first 64 samples of a training loader came again, by its index in the data set"
    ),
    "smoke.samples_changed": Field("1", "times that its tensors then were others than before: it is augmented"),
    "smoke.batches": Field(
        "JSON list",
        "for each DataLoader of which batches were seen to arrive at the model or its loss as they were given: given, "
        "trained, dropped (given between the first and the last that arrived, and never trained on), "
        "skipped_at_start, and the first steps of dropped ones",
    ),
    "smoke.decayed": Field(
        "1", "numbers in parameters that have a weight decay above 0, of all optimizers that stepped"
    ),
    "smoke.decayed_vectors": Field("1", "those of them in tensors of one dimension: biases and norms"),
    "smoke.vocabulary": Field("1", "classes of the largest cross_entropy or nll_loss call; null if none"),
    "smoke.loss_reduction": Field("word", "mean, sum or none of that call"),
    "smoke.label_smoothing": Field("1", "of that call"),
    "smoke.initial_cross_entropy": Field("nat", "mean cross entropy per label before the first step"),
    "smoke.label_entropy": Field("nat", "last value of smoke/label_entropy"),
    "smoke.sharded": Field("true or false", "parameters are sharded (FSDP): norms are of the local shard"),
    "smoke.autocast": Field("JSON list", "types in which autocast computed forwards of the outermost modules"),
    "smoke.rows": Field(
        "JSON list",
        "for each outermost module: samples that it was trained on (the first dimension of its largest input), and how "
        "many of them were different by content",
    ),
    "smoke.rows_evaluated": Field(
        "JSON list", "different samples in forwards that did not train, and how many of them were trained on as well"
    ),
    "smoke.first_step_masks": Field(
        "hash",
        "order, places, layouts, rates and generator states of the dropouts of the first forward: equal masks; null "
        "where two could change places unseen, other random numbers were drawn as well, or none",
    ),
    "smoke.ranks_shared": Field(
        "1",
        "share of the samples that rank 0 asked for first, until one came again, which another rank asked for too; "
        "of several others the largest; null of one rank",
    ),
    "smoke.dropout_used": Field(
        "JSON list",
        "distinct rates of the dropouts that training forwards went through (modules, functions, attention), sorted; "
        "null if the script did not come to its end",
    ),
    "smoke.first_step_random": Field(
        "true or false",
        "random numbers were drawn between the first batch (without a loader: the first forward) and the first "
        "backward; null if unknown",
    ),
    "smoke.checkpointed": Field(
        "true or false", "activations were checkpointed by torch.utils.checkpoint, use_reentrant=False"
    ),
    "smoke.compiled": Field("true or false", "torch.compile was used: modules inside are not seen"),
    # Provenance.
    "env.platform": Field("text", "system and machine, such as Linux x86_64"),
    "env.processor": Field("text", "model of the CPU where the system tells"),
    "env.cpu_capability": Field("text", "instruction set that torch uses"),
    "env.python": Field("text", "version"),
    "env.torch": Field("text", "version"),
    "env.threads": Field("1", "torch.get_num_threads() at the first step"),
    "env.matmul_precision": Field("word", "torch.get_float32_matmul_precision(): highest, high or medium"),
    "env.dtype": Field("text", "dtype of most parameter numbers"),
    "env.device": Field("text", "device type of most parameter numbers, with the name of the GPU"),
    "env.cuda": Field("text", "version torch was built with, null without"),
    "env.deterministic": Field("true or false", "torch.are_deterministic_algorithms_enabled()"),
    "env.world_size": Field("1", "processes that train together"),
    "env.packages": Field(
        "JSON object",
        "versions of transformers, accelerate, lightning, numpy where the script imported them",
    ),
}
"""Every fact, by its key in ``Run.config``. Lists and objects are JSON text."""
