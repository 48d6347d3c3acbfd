"""Waits for ``import torch`` in a process that ``trainscope smoke`` started, and then starts the recorder there.

Python imports this at start-up because the folder is on PYTHONPATH. It imports nothing itself, so that a process
without torch pays nothing, and then runs the ``sitecustomize`` that it hides.
"""

import os
import sys

_external = sys.modules["_frozen_importlib_external"]


class _Torch:
    """Finds ``torch`` as Python would have, and starts the recorder when its body has run.

    It stays until then: who only asks whether there is a torch does not import it.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN205, ARG004
        if name != "torch":
            return None
        spec = _external.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            if _Torch in sys.meta_path:
                sys.meta_path.remove(_Torch)
            execute(module)
            try:
                _start()
            except Exception as error:  # noqa: BLE001  # the script runs, recorded or not
                _say(f"{type(error).__name__}: {error}")

        spec.loader.exec_module = exec_module
        return spec


def _start() -> None:
    """Import the recorder as ``_trainscope``: neither the package nor what it needs has to be installed here."""
    import importlib
    import types

    package = types.ModuleType("_trainscope")
    package.__path__ = [os.environ["TRAINSCOPE_SMOKE_PACKAGE"]]
    sys.modules["_trainscope"] = package
    importlib.import_module("_trainscope.smoke.injected.start").start()


def _say(reason: str) -> None:
    """Tell the parent why nothing is recorded."""
    import json

    with open(os.path.join(json.loads(os.environ["TRAINSCOPE_SMOKE"])["folder"], "fault"), "w") as file:  # noqa: PTH118, PTH123
        file.write(reason)


def _hidden() -> None:
    """Run the ``sitecustomize`` that would have run without this one."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib is an import
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]  # noqa: PTH100
    spec = _external.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(sys.modules["sitecustomize"])


if os.environ.get("TRAINSCOPE_SMOKE"):
    sys.meta_path.insert(0, _Torch)
_hidden()
