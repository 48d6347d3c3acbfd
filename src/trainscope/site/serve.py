"""Shows a site on this machine, for a look before it is published."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from trainscope.core.errors import ConfigError
from trainscope.site.files import MARKER

ADDRESS = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    """Says nothing of a browser that left before it had all."""

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the library
        """Report what went wrong with a request, unless the other side is gone."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    """Serves files of the site without a word on the terminal."""

    def end_headers(self) -> None:
        """Add that nothing is kept: a site under construction changes."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Answer that there is no such file, too, where the address is none that a file can have."""
        try:
            return super().send_head()
        except ValueError:
            self.send_error(404)
            return None

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
        return _Server((ADDRESS, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        raise ConfigError(f"--port {port}: {error.strerror or error}; try another, or 0 for a free one") from None
