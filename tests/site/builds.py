"""Sites built of a folder of logs, and all bytes of them."""

from pathlib import Path

from trainscope.core.settings import Settings
from trainscope.site.build import Options, build

LOGS = Path(__file__).parents[2] / "examples" / "logs"


def files(site):
    return {p.relative_to(site).as_posix(): p.read_bytes() for p in sorted(site.rglob("*")) if p.is_file()}


def made(logs, out, **options):
    return build([str(logs)], out, Settings(), Options(jobs=1, **options))
