"""A site shown on this machine: what browsers do to a server, and what of it is said."""

import socket
import struct
import threading
import urllib.request

import pytest

from trainscope.site.files import MARKER
from trainscope.site.serve import server_for


@pytest.fixture
def served(tmp_path):
    (tmp_path / MARKER).write_text("{}")
    (tmp_path / "large.js").write_bytes(b"x" * (8 << 20))
    (tmp_path / "index.html").write_text("hello")
    server = server_for(tmp_path, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_browser_that_leaves_and_an_address_of_no_file_say_nothing_on_the_terminal(served, capfd):
    with socket.create_connection(served.server_address) as gone:
        gone.sendall(b"GET /large.js HTTP/1.1\r\nHost: x\r\n\r\n")
        assert gone.recv(15) == b"HTTP/1.0 200 OK"
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with socket.create_connection(served.server_address) as odd:
        odd.sendall(b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert odd.recv(12) == b"HTTP/1.0 404"
    for thread in threading.enumerate():
        if "process_request" in thread.name:
            thread.join(10)
    with urllib.request.urlopen(f"http://127.0.0.1:{served.server_address[1]}/index.html") as whole:
        assert whole.read() == b"hello"
    assert capfd.readouterr().err == ""
