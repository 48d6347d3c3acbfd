"""Reads the settings in a ``training_args.bin`` of Hugging Face without ever unpickling it.

Recognised by   a zip archive of ``torch.save`` with a ``data.pkl`` in it
Keeps           numbers, words and switches of the object's own state; of an enumeration its value
Drops           every other object
Quirks          a pickle is a program, and this one is not run: its opcodes are walked by name, what they would import,
                call or build becomes an inert placeholder, and an opcode that is not known ends the reading
Reference       https://docs.python.org/3/library/pickletools.html
"""

from __future__ import annotations

import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 256 << 10
MAX_OPCODES = 50_000
_BODY = "/data.pkl"
_PUSHED = frozenset(
    "NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT "  # noqa: SIM905
    "UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME"})


class _Mark:
    """Where a collection begins on the stack."""


@dataclass(slots=True, eq=False)
class _Object:
    """Stands for whatever the pickle would import, call or build."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    @property
    def plain(self) -> Any:  # noqa: ANN401
        """The value of an enumeration, which is made of one plain argument; else the object itself."""
        one = self.arguments[0] if len(self.arguments) == 1 else None
        return one if isinstance(one, (str, int, float)) else self


def settings_in(path: Path) -> dict[str, Any]:
    """Return the public attributes of the pickled object, unknown objects among them.

    Raises
    ------
    ValueError
        If it is no such archive, or holds what the settings of a training do not.
    OSError
        If it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(_BODY)]
            if len(names) != 1:
                raise ValueError("it holds no pickle of torch.save")
            with archive.open(names[0]) as file:
                body = file.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"it is no archive of torch.save ({type(error).__name__})") from None
    if len(body) > MAX_BYTES:
        raise ValueError(f"its pickle is larger than {MAX_BYTES >> 10} KiB")
    found = _walk(body)
    state = found.state if isinstance(found, _Object) else None
    if not isinstance(state, dict):
        raise ValueError("its pickle holds no settings by name")
    named = {key: value for key, value in state.items() if isinstance(key, str) and not key.startswith("_")}
    return {key: value.plain if isinstance(value, _Object) else value for key, value in named.items()}


def _walk(body: bytes) -> Any:  # noqa: ANN401
    """Return what a pickle comes to, with placeholders for every object."""
    machine = _Machine()
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(body)):
            if number > MAX_OPCODES:
                raise ValueError("its pickle is too long")
            if opcode.name == "STOP":
                return machine.stack[-1]
            machine.take(opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its pickle is damaged ({type(error).__name__})") from None
    raise ValueError("its pickle has no end")


class _Machine:
    """The stack and the memo of a pickle, and what each opcode does to them."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def take(self, name: str, argument: Any) -> None:  # noqa: ANN401
        """Do one opcode.

        Raises
        ------
        ValueError
            If it is none that the settings of a training need.
        """
        if name in _PUSHED:
            self.stack.append(_CONSTANTS.get(name, argument))
        elif name in _TUPLES:
            self._tuple(_TUPLES[name])
        elif name not in _IGNORED:
            method = getattr(self, f"on_{name.lower()}", None)
            if method is None:
                raise ValueError(f"its pickle has an opcode {name}")
            method(argument)

    def _tuple(self, count: int) -> None:
        items = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        self.stack.append(items)

    def _marked(self) -> list[Any]:
        at = max(i for i, item in enumerate(self.stack) if isinstance(item, _Mark))
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def on_mark(self, _: object) -> None:
        self.stack.append(_Mark())

    def on_tuple(self, _: object) -> None:
        self.stack.append(tuple(self._marked()))

    def on_empty_dict(self, _: object) -> None:
        self.stack.append({})

    def on_empty_list(self, _: object) -> None:
        self.stack.append([])

    def on_empty_set(self, _: object) -> None:
        self.stack.append(_Object())

    def on_append(self, _: object) -> None:
        self._add([self.stack.pop()])

    def on_appends(self, _: object) -> None:
        self._add(self._marked())

    def on_additems(self, _: object) -> None:
        self._marked()

    def _add(self, items: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(items)

    def on_setitem(self, _: object) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def on_setitems(self, _: object) -> None:
        self._set(self._marked())

    def _set(self, items: list[Any]) -> None:
        if isinstance(self.stack[-1], dict):
            pairs = zip(items[::2], items[1::2], strict=True)
            self.stack[-1].update((key, value) for key, value in pairs if isinstance(key, (str, int, float)))

    def on_global(self, _: object) -> None:
        self.stack.append(_Object())

    def on_stack_global(self, _: object) -> None:
        del self.stack[-2:]
        self.stack.append(_Object())

    def on_binpersid(self, _: object) -> None:
        self.stack[-1] = _Object()

    def on_reduce(self, _: object) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = _Object(arguments if isinstance(arguments, tuple) else ())

    on_newobj = on_reduce

    def on_build(self, _: object) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], _Object):
            self.stack[-1].state = state

    def on_binput(self, argument: int) -> None:
        self.memo[argument] = self.stack[-1]

    on_long_binput = on_put = on_binput

    def on_memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def on_binget(self, argument: int) -> None:
        self.stack.append(self.memo[argument])

    on_long_binget = on_get = on_binget

    def on_pop(self, _: object) -> None:
        self.stack.pop()
