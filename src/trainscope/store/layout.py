"""Names of the files in a run directory, whatever the parameters are called.

::

    <run_dir>/<run_name>[_rank<N>]/
        meta.json                        how the run was set up
        manifest.json                    what is there: last step, layers and their files, spikes
        global.arrow                     one row a step
        layers/<name>.arrow              one file a layer, thinned out with age
        moe.arrow                        routing and addressing shares
        plugin_metrics.arrow             rows of metric plug-ins
        journal/<first step>.arrow       the newest steps of all layers; folded into layers/ as they age
        spikes/spike_step_<N>.arrow      every step around spike N
        spikes/spike_step_<N>_layers/    the same, one file a layer
        spikes/rewound-<k>/              spikes of steps that a resumed run trained again
        rng_states/step_<N>.pkl          RNG state for replay
        checkpoints/<N>.pt               checkpoint, if asked for

Every ``.arrow`` file is an Arrow IPC stream of whole record batches: a killed run ends at its last
flush, at worst with a torn message behind it.
"""

from __future__ import annotations

import glob
import hashlib
from itertools import zip_longest
from pathlib import Path
from urllib.parse import quote

from trainscope.core.files import PART

META, MANIFEST, LOCK = "meta.json", "manifest.json", ".lock"
GLOBAL, SHARES, PLUGINS = "global.arrow", "moe.arrow", "plugin_metrics.arrow"
LAYERS, JOURNAL, SPIKES = "layers", "journal", "spikes"
RNG_STATES, CHECKPOINTS = "rng_states", "checkpoints"
SUFFIX = ".arrow"

MAX_STEM = 180
"""Characters of an encoded name; file systems allow 255 bytes, and a suffix or ``.part`` must fit too."""
_RESERVED = frozenset(["con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10))])


def clean(name: str) -> str:
    r"""Return `name` as valid UTF-8: a lone surrogate becomes its ``\udXXX`` escape."""
    return name.encode("utf-8", "backslashreplace").decode()


def stem(name: str) -> str:
    """Return the file name, without suffix, of a layer called `name`.

    Percent-encoded; where that is too long, hidden, or reserved by Windows, shortened with a hash of the
    whole name behind it.
    """
    encoded = quote(name, safe="")
    if (
        len(encoded) <= MAX_STEM
        and not encoded.startswith(".")
        and encoded
        and encoded.split(".")[0].lower() not in _RESERVED
    ):
        return encoded
    return hashed_stem(name)


def hashed_stem(name: str) -> str:
    """Return the start of the encoded name and a hash of the whole: unique, and still recognisable."""
    head = quote(name, safe="")[:80]
    cut = head.rfind("%", len(head) - 2)
    head = (head if cut < 0 else head[:cut]).lstrip(".")
    return f"{head}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class LayerFiles:
    """Gives each layer its file name; no two share one, not even where case does not count."""

    def __init__(self) -> None:
        self._file: dict[str, str] = {}
        self._taken: set[str] = set()

    def file(self, name: str) -> str:
        """Return the file name of the layer called `name`, the same at every call."""
        found = self._file.get(name)
        if found is None:
            chosen = stem(name)
            if chosen.lower() in self._taken:
                chosen = hashed_stem(name)
            found = self.adopt(name, chosen + SUFFIX)
        return found

    def adopt(self, name: str, file: str) -> str:
        """Take over the name that an earlier session gave."""
        self._file[name] = file
        self._taken.add(file.removesuffix(SUFFIX).lower())
        return file

    def names(self) -> list[str]:
        """Return the layers in the order of first use."""
        return list(self._file)

    def items(self) -> list[tuple[str, str]]:
        """Return (name, file) in the order of first use."""
        return list(self._file.items())


def rng_state(run: Path, step: int) -> Path:
    """Return where the RNG state before `step` goes."""
    return run / RNG_STATES / f"step_{step}.pkl"


def checkpoint(run: Path, step: int, template: bool | str | None) -> Path:
    """Return where the checkpoint of `step` goes: as a template says, from the run's folder on."""
    if isinstance(template, str):
        return run / template.replace("{step}", str(step))
    return run / CHECKPOINTS / f"{step}.pt"


def unfinished(run: Path, template: bool | str | None) -> list[Path]:
    """Return the files and folders that a killed session had begun to write, and only those it can have."""
    files = (META, MANIFEST, GLOBAL, SHARES, PLUGINS, f"{LAYERS}/*{SUFFIX}", f"{JOURNAL}/*{SUFFIX}")
    wanted = Path(template if isinstance(template, str) else f"{CHECKPOINTS}/{{step}}.pt")
    # From its root where the user named one.
    home = run / wanted.anchor
    step = "[0-9]*"
    checkpoints = glob.escape(str(wanted.relative_to(wanted.anchor))).replace("{step}", step)
    return [
        path
        for folder, names in (
            (run, (*files, f"{SPIKES}/spike_*", f"{RNG_STATES}/step_{step}.pkl")),
            (home, (checkpoints,)),
        )
        for name in names
        for path in sorted(folder.glob(name + PART))
    ]


def segments(run: Path) -> list[Path]:
    """Return the journal segments of a run, oldest first."""
    return sorted((run / JOURNAL).glob("*" + SUFFIX))


def segments_of(run: Path, first: int, last: int) -> list[Path]:
    """Return the segments that may hold steps from `first` to `last`, oldest first."""
    found = [(_first_step(path), path) for path in segments(run)]
    ends = [begin for begin, _ in found[1:]]
    return [path for (begin, path), end in zip_longest(found, ends) if begin <= last and (end is None or end > first)]


def _first_step(segment: Path) -> int:
    text = segment.stem.rpartition("-")[2]
    return int(text) if text.isdigit() else 0


def segment_name(number: int, first_step: int) -> str:
    """Return the file name of a journal segment: counted, so that names sort as they were written."""
    return f"{number:08d}-{first_step}{SUFFIX}"
