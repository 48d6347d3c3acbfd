"""Shows a site on this machine, for a look before it is published."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from trainscope.core.errors import ConfigError
from trainscope.site.files import MARKER

ADDRESS = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """Serves files of the site without a word on the terminal."""

    def end_headers(self) -> None:
        """Add that nothing is kept: a site under construction changes."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def server_for(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a site's folder, not yet running.

    Raises
    ------
    ConfigError
        If the folder is no site, or the port is taken.
    """
    if not (folder / MARKER).is_file():
        raise ConfigError(f"{folder}: is no site; build one with trainscope site build PATH... --out {folder}")
    try:
        return ThreadingHTTPServer((ADDRESS, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        raise ConfigError(f"--port {port}: {error.strerror or error}; try another, or 0 for a free one") from None
