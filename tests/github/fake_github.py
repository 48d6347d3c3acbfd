"""A stand-in for the routes of GitHub's REST API that we use, on the loopback interface.

It pages, answers 422 to a body that is too long, 403 to a token that may not write, and fails in the ways of the real
one when told to. A journal keeps every request; what the real one would not understand, or never answer, is kept apart.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.github import contract

HEAD, BASE = "a" * 40, "b" * 40
MAX_BODY = 65_536


class FakeGitHub(ThreadingHTTPServer):
    """The state of one repository."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.lock = threading.Lock()
        self.comments: list[dict] = []
        self.pulls = [pull(1)]
        self.commits: list[str] = []
        self.artifacts: dict[int, tuple[str, int, bytes]] = {}  # id to name, run, archive
        self.journal: list[dict] = []
        self.wrong: list[str] = []
        self.read_only = False
        self.failures: list[tuple[int, dict[str, str], str]] = []  # answers of the next writes
        self.next_id = 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, body: str, login: str = "octocat", number: int = 1) -> dict:
        comment = {
            "id": self.next_id,
            "issue_url": issue_url(number),
            "body": body,
            "user": {"login": login, "type": "User"},
            "html_url": f"https://github.example/c/{self.next_id}",
        }
        self.next_id += 1
        self.comments.append(comment)
        return comment

    def writes(self) -> list[dict]:
        return [r for r in self.journal if r["method"] != "GET"]


def issue_url(number: int) -> str:
    return f"https://api.github.example/repos/example/sample/issues/{number}"


def pull(number: int, label: str = "contributor:feat", head: str = HEAD) -> dict:
    return {"number": number, "state": "open", "head": {"label": label, "sha": head}, "base": {"sha": BASE}}


@contextmanager
def serving(port: int = 0):
    server = FakeGitHub(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert server.wrong == []


class _Handler(BaseHTTPRequestHandler):
    server: FakeGitHub

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, code: int, found: object = None, headers: dict[str, str] | None = None) -> None:
        if not isinstance(found, bytes):
            self._note(contract.wrong_answer(self.command, urlsplit(self.path).path, code, found))
        raw = found if isinstance(found, bytes) else b"" if found is None else json.dumps(found).encode()
        self.send_response(code)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _note(self, wrong: str | None) -> None:
        if wrong is not None:
            self.server.wrong.append(wrong)

    def _any(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        asked = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(asked.query).items()}
        token = self.headers.get("Authorization")
        with self.server.lock:
            about = {"method": self.command, "path": asked.path, "body": body, "token": token}
            self.server.journal.append(about)
            if asked.path != "/blob":
                self._note(contract.wrong_request(self.command, self.path, body))
            if asked.path == "/blob" and token:
                return self._answer(400, {"message": "the store got the token"})
            if asked.path != "/blob" and not token:
                return self._answer(401, {"message": "Requires authentication"})
            if self.command != "GET":
                if self.server.read_only:
                    return self._answer(403, {"message": "Resource not accessible by integration"})
                if self.server.failures:
                    code, headers, message = self.server.failures.pop(0)
                    return self._answer(code, {"message": message}, headers)
                if body and len(body.get("body", "")) > MAX_BODY:
                    return self._answer(422, {"message": "Body is too long (maximum is 65536 characters)"})
            return self._route(asked.path, query, body)

    do_GET = do_POST = do_PATCH = do_DELETE = _any

    def _route(self, path: str, query: dict[str, str], body: dict | None) -> None:
        if not self._comments(path, query, body) and not self._artifacts(path, query):
            self._repository(path, query)

    def _comments(self, path: str, query: dict[str, str], body: dict | None) -> bool:
        s = self.server
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/issues/(\d+)/comments", path):
            number = int(found[1])
            if self.command == "POST":
                self._answer(201, s.add(body["body"], "github-actions[bot]", number))
            else:
                self._page([c for c in s.comments if c["issue_url"] == issue_url(number)], query)
            return True
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/issues/comments/(\d+)", path):
            comment = next((c for c in s.comments if c["id"] == int(found[1])), None)
            if comment is None:
                self._answer(404, {"message": "Not Found"})
            elif self.command == "DELETE":
                s.comments.remove(comment)
                self._answer(204)
            else:
                comment["body"] = body["body"]
                self._answer(200, comment)
            return True
        return False

    def _repository(self, path: str, query: dict[str, str]) -> None:
        s = self.server
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/pulls/(\d+)", path):
            return self._answer(200, next(p for p in s.pulls if p["number"] == int(found[1])))
        if re.fullmatch(r"/repos/[^/]+/[^/]+/pulls", path):
            return self._page([p for p in s.pulls if p["head"]["label"] == query.get("head")], query)
        if re.fullmatch(r"/repos/[^/]+/[^/]+/compare/[0-9a-f]+\.\.\.[0-9a-f]+", path):
            return self._answer(200, {"merge_base_commit": {"sha": s.commits[0] if s.commits else BASE}})
        if re.fullmatch(r"/repos/[^/]+/[^/]+/commits", path):
            return self._page([{"sha": sha} for sha in s.commits], query)
        return self._answer(404, {"message": "Not Found"})

    def _artifacts(self, path: str, query: dict[str, str]) -> bool:
        s = self.server
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/actions/runs/(\d+)/artifacts", path):
            rows = [
                {"id": key, "name": name, "expired": False}
                for key, (name, run, _) in s.artifacts.items()
                if run == int(found[1]) and query.get("name") in (None, name)
            ]
            self._answer(200, {"total_count": len(rows), "artifacts": rows})
        elif found := re.fullmatch(r"/repos/[^/]+/[^/]+/actions/artifacts/(\d+)/zip", path):
            # As GitHub does: a store of another name, that has a signature of its own and must not get the token.
            port = s.server_address[1]
            self._answer(302, None, {"Location": f"http://localhost:{port}/blob?id={found[1]}"})
        elif path == "/blob":
            self._answer(200, s.artifacts[int(query["id"])][2])
        else:
            return False
        return True

    def _page(self, rows: list, query: dict[str, str]) -> None:
        size = min(int(query.get("per_page", 30)), 100)
        start = (int(query.get("page", 1)) - 1) * size
        self._answer(200, rows[start : start + size])
