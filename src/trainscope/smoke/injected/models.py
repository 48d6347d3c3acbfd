"""Which models are trained, found without being told: the outermost modules that hold an optimizer's parameters."""

from __future__ import annotations

import collections
import gc
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...probe.names import clean, is_wrapper
from ...probe.tensors import dense, is_sharded
from . import hashing

MAX_LISTED = 4_096
"""Parameters that are listed one by one in the facts."""


class Models:
    """The outermost modules and the names of their parameters."""

    def __init__(self) -> None:
        self.roots: list[weakref.ref[nn.Module]] = []
        self._names: dict[int, tuple[weakref.ref[Tensor], str]] = {}
        self._modules: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._copies: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()

    def discover(self, parameters: Sequence[Tensor]) -> list[nn.Module]:
        """Find the modules of `parameters`, if any has no name yet; return those that are new."""
        if all(self._known(p) for p in parameters):
            return []
        fresh = []
        for root in outermost(parameters):
            if not any(ref() is root for ref in self.roots):
                self.roots.append(weakref.ref(root))
                fresh.append(root)
        self._name()
        return fresh

    def place_of(self, module: nn.Module) -> int:
        """Return which of the outermost modules this is, -1 if it is none."""
        return next((place for place, ref in enumerate(self.roots) if ref() is module), -1)

    def is_watched(self, module: nn.Module, *, inside: bool) -> bool:
        """Tell whether this is an outermost module, or a copy of one that is evaluated, and not `inside` another."""
        return self.place_of(module) >= 0 or (not inside and not torch.is_grad_enabled() and self.is_copy(module))

    def is_copy(self, module: nn.Module) -> bool:
        """Tell whether this is another model of the same class and shapes: averaged weights, a target network."""
        if module not in self._copies:
            alike = (root for root in self.alive() if type(root) is type(module))
            self._copies[module] = any(_shapes(root) == _shapes(module) for root in alike)
        return self._copies[module]

    def alive(self) -> list[nn.Module]:
        """Return the outermost modules that still exist."""
        return [root for ref in self.roots if (root := ref()) is not None]

    def name_of(self, parameter: Tensor) -> str | None:
        """Return the name of a parameter, None if no module has it."""
        return self._names[id(parameter)][1] if self._known(parameter) else None

    def module_name(self, module: object) -> str | None:
        """Return the name of a module, None if it is in no model that is trained."""
        entry = self._modules.get(id(module))
        return entry[1] if entry is not None and entry[0]() is module else None

    def order_of(self, module: object) -> int:
        """Return a module's place among all modules, -1 if it is in no model that is trained."""
        known = self.module_name(module) is not None
        return list(self._modules).index(id(module)) if known else -1

    def module_names(self) -> dict[int, str]:
        """Return the name of every module that is alive, by its ``id``."""
        return {key: name for key, (ref, name) in self._modules.items() if ref() is not None}

    def named(self) -> list[tuple[str, Tensor]]:
        """Return every parameter once, in model order."""
        found: dict[int, tuple[str, Tensor]] = {}
        for prefix, root in self._prefixed():
            for name, parameter in root.named_parameters():
                found.setdefault(id(parameter), (prefix + clean(name, wrapped=is_wrapper(root)), parameter))
        return list(found.values())

    def rename(self) -> None:
        """Take the names anew: modules may have been added or wrapped since."""
        self._name()

    def _known(self, parameter: Tensor) -> bool:
        entry = self._names.get(id(parameter))
        return entry is not None and entry[0]() is parameter

    def _name(self) -> None:
        for name, parameter in self.named():
            self._names[id(parameter)] = (weakref.ref(parameter), name)
        for prefix, root in self._prefixed():
            for name, module in root.named_modules():
                self._modules.setdefault(id(module), (weakref.ref(module), prefix + clean(name)))

    def _prefixed(self) -> Iterator[tuple[str, nn.Module]]:
        roots = self.alive()
        for place, root in enumerate(roots):
            yield (f"{type(root).__name__}{place}." if len(roots) > 1 else ""), root


def _shapes(module: nn.Module) -> list[tuple[str, tuple[int, ...]]]:
    found = []
    for name, parameter in module.named_parameters():
        shapeless: bool = is_lazy(parameter)
        found.append((name, () if shapeless else tuple(parameter.shape)))
    return found


def outermost(parameters: Iterable[Tensor]) -> list[nn.Module]:
    """Return the modules that hold `parameters` and are in no other, those with most of them first."""
    wanted = {id(p) for p in parameters}
    objects = gc.get_objects()
    # By type and not isinstance: ten times faster, and a proxy's __class__ is left alone.
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, nn.Module)}
    modules = [o for o in objects if type(o) in kinds and "_modules" in o.__dict__]
    del objects
    inner = {id(child) for m in modules for child in m._modules.values() if child is not None and child is not m}
    owned = {id(m): sum(id(p) in wanted for p in m.parameters()) for m in modules if id(m) not in inner}
    roots = [m for m in modules if owned.get(id(m))]
    # A loss module that merely points at the model would be a root of its own; the order of creation breaks ties.
    return sorted(roots, key=lambda m: -owned[id(m)])


def fingerprint(models: Models, trained: set[int]) -> dict[str, Any]:
    """Describe the models as they are now: names, shapes, weights, kinds of modules.

    Parameters
    ----------
    trained : set of int
        ``id`` of every parameter that an optimizer has.
    """
    named = models.named()
    rows, trainable, names = [], [], []
    for name, parameter in named:
        hash_ = hashing.of_tensor(dense(parameter.detach()), limit=None)
        what = "frozen" if not parameter.requires_grad else "trained" if id(parameter) in trained else "left out"
        shape = list(parameter.shape)
        rows.append([name, shape, hash_, what])
        names.append(f"{name}{shape}")
        if parameter.requires_grad:
            trainable.append((f"{shape}{parameter.dtype}", hash_))
    facts: dict[str, Any] = {
        "class": ", ".join(type(root).__name__ for root in models.alive()),
        "tensors": len(named),
        "numel": sum(p.numel() for _, p in named),
        "trainable_numel": sum(p.numel() for _, p in named if p.requires_grad),
        "tied": sum(
            sum(1 for _ in root.named_parameters(remove_duplicate=False)) - sum(1 for _ in root.named_parameters())
            for root in models.alive()
        ),
        "names_hash": zlib.crc32("\n".join(names).encode("utf-8", "backslashreplace")),
        "shapes_hash": zlib.crc32("\n".join(sorted(shape for shape, _ in trainable)).encode()),
        "initial_hash": hashing.together(sorted(hash_ for _, hash_ in trainable)),
        **_modules(models),
    }
    return {
        "model": facts,
        "parameters": rows if len(rows) <= MAX_LISTED else None,
        "sharded": any(is_sharded(p) for _, p in named),
        **_provenance([p for _, p in named]),
    }


def _modules(models: Models) -> dict[str, Any]:
    kinds: collections.Counter[str] = collections.Counter()
    dropout, momentum = set(), set()
    for root in models.alive():
        for module in root.modules():
            kinds[type(module).__name__] += 1
            if isinstance(module, nn.modules.dropout._DropoutNd):
                dropout.add(float(module.p))
            elif isinstance(module, nn.RNNBase):
                dropout.update({recurrent_dropout(module)} - {0.0})
            elif isinstance(module, nn.modules.batchnorm._NormBase) and module.momentum is not None:
                momentum.add(float(module.momentum))
    return {
        "modules": dict(sorted(kinds.items())),
        "dropout": sorted(dropout),
        "batch_norm_momentum": sorted(momentum),
    }


def recurrent_dropout(module: nn.RNNBase) -> float:
    """Return the rate of the dropout between the layers of a recurrent module, which no function shows."""
    return float(module.dropout) if module.num_layers > 1 else 0.0


def _provenance(parameters: Sequence[Tensor]) -> dict[str, Any]:
    dtypes: collections.Counter[str] = collections.Counter()
    devices: collections.Counter[str] = collections.Counter()
    for parameter in parameters:
        dtypes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
        devices[parameter.device.type] += parameter.numel()
    return {
        "dtype": dtypes.most_common(1)[0][0] if dtypes else None,
        "device": devices.most_common(1)[0][0] if devices else None,
    }
