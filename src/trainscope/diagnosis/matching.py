"""Which parameter of one run is which of another, whatever they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from trainscope.core.facts import Parameter


def match(run: Sequence[Parameter], base: Sequence[Parameter]) -> dict[str, str]:
    """Return baseline name to run name for every tensor that can be told.

    First equal name and shape; then equal first bytes and shape, where only one is left on each side, or as many
    on both; then equal shape in the order of the model, where as many are left on both sides.

    Notes
    -----
    A renamed or moved module keeps its first weights under the same seed. Tensors that share their bytes (zeros,
    ones) are told apart by order, which moving a module within the model may change; they are then matched with
    another tensor of the same content, which no comparison of sizes can notice.
    """
    mine, theirs = list(run), list(base)
    found: dict[str, str] = {}
    for key in (_by_name, _by_bytes, _by_shape):
        pairs = _paired(mine, theirs, key)
        found.update(pairs)
        taken = set(pairs.values())
        mine = [p for p in mine if p.name not in taken]
        theirs = [p for p in theirs if p.name not in pairs]
    return found


def _by_name(parameter: Parameter) -> Hashable:
    return (parameter.name, parameter.shape)


def _by_bytes(parameter: Parameter) -> Hashable:
    return (parameter.initial, parameter.shape) if parameter.initial is not None else None


def _by_shape(parameter: Parameter) -> Hashable:
    return parameter.shape


def _paired(
    run: Sequence[Parameter], base: Sequence[Parameter], key: Callable[[Parameter], Hashable]
) -> dict[str, str]:
    mine, theirs = _grouped(run, key), _grouped(base, key)
    return {
        b: m
        for group, names in theirs.items()
        if len(names) == len(mine.get(group, ()))
        for b, m in zip(names, mine[group], strict=True)
    }


def _grouped(parameters: Sequence[Parameter], key: Callable[[Parameter], Hashable]) -> dict[Hashable, list[str]]:
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for parameter in parameters:
        group = key(parameter)
        if group is not None:
            groups[group].append(parameter.name)
    return groups
