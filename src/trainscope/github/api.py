"""A small client of GitHub's REST API on the standard library: retries, pages, and no redirect with the token."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from trainscope import __version__
from trainscope.core.errors import GitHubError

TRIES = 5
TIMEOUT = 30.0
"""Seconds that one request may take."""
LONGEST_WAIT = 60.0
"""Seconds; a service that asks for more is told of instead of waited for."""
PER_PAGE = 100
MOST_PAGES = 100
MAX_ANSWER = 64 << 20
"""Bytes of a JSON answer that are read."""
TOO_MANY = 429
"""Status of a refusal for asking too often; GitHub itself answers 403 to some, which is also "you may not"."""
_BUSY = (TOO_MANY, 500, 502, 503, 504)
_REDIRECTS = (301, 302, 303, 307, 308)


class Api:
    """GitHub's REST API for one token.

    Parameters
    ----------
    url : str
        Root of the API, as in ``GITHUB_API_URL``.
    token : str
        Sent to this root only.
    sleep : callable, optional
        Waits for so many seconds between two tries.
    """

    def __init__(self, url: str, token: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._token, self._sleep = url.rstrip("/"), token, sleep
        self._open = urllib.request.build_opener(_NoRedirect()).open

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a question.

        Raises
        ------
        GitHubError
            If the API refuses, or cannot be reached after several tries.
        """
        return self.send("GET", f"{path}?{urlencode(query)}" if query else path)

    def pages(self, path: str, query: Mapping[str, str | int] | None = None, *, key: str = "") -> Iterator[Any]:
        """Yield every item of a list, page by page.

        Parameters
        ----------
        key : str, optional
            Where the list stands in an answer that is an object.

        Raises
        ------
        GitHubError
            As :meth:`get`.
        """
        # Counted instead of followed: the address of the next page comes from outside.
        for page in range(1, MOST_PAGES + 1):
            found = self.get(path, {**(query or {}), "per_page": PER_PAGE, "page": page})
            rows = found.get(key) if key and isinstance(found, dict) else found
            if not isinstance(rows, list):
                raise GitHubError(f"GET {path}: the answer is no list")
            yield from rows
            if len(rows) < PER_PAGE:
                return

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a request, None where it is empty.

        Raises
        ------
        GitHubError
            As :meth:`get`.
        """
        data = None if body is None else json.dumps(body).encode()
        raw = self._content(method, path, data, MAX_ANSWER)
        try:
            return json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            raise GitHubError(f"{method} {path}: the answer is not JSON") from None

    def download(self, path: str, limit: int) -> bytes:
        """Return a file, from wherever the API sends us for it.

        Raises
        ------
        GitHubError
            As :meth:`get`, or if the file has more than `limit` bytes.
        """
        return self._content("GET", path, None, limit)

    def _content(self, method: str, path: str, data: bytes | None, limit: int) -> bytes:
        try:
            with self._answer(method, self._url + path, data) as answer:
                raw = answer.read(limit + 1)
        except (OSError, HTTPException) as error:
            raise GitHubError(f"{method} {path}: the answer broke off ({_reason(error)})") from None
        if len(raw) > limit:
            raise GitHubError(f"{method} {path}: the answer has more than {limit} bytes")
        return raw

    def _answer(self, method: str, url: str, data: bytes | None) -> IO[bytes]:
        what = f"{method} {urlsplit(url).path}"
        said = ""
        for attempt in range(TRIES):
            try:
                return self._once(method, url, data)
            except urllib.error.HTTPError as error:
                said = _message(error)
                wait = _wait(error, said)
                if wait is None:
                    status = TOO_MANY if _is_limited(error, said) else error.code
                    raise GitHubError(f"{what}: {error.code} {said}", status=status) from None
                # What was asked for, or twice as long each time, never in step with other jobs.
                delay = wait or min(2.0**attempt, 16.0)
                said = f"{error.code} {said}"
            except (OSError, HTTPException) as error:
                delay, said = min(2.0**attempt, 16.0), f"cannot be reached ({_reason(error)})"
            if attempt + 1 < TRIES:
                self._sleep(delay * random.uniform(1.0, 1.25))
        raise GitHubError(f"{what}: {said}, {TRIES} times")

    def _once(self, method: str, url: str, data: bytes | None) -> IO[bytes]:
        for _ in range(4):
            request = urllib.request.Request(url, data=data, method=method, headers=self._headers(url, data))
            answer: IO[bytes] = self._open(request, timeout=TIMEOUT)
            status, place = getattr(answer, "status", 200), getattr(answer, "headers", Message()).get("Location")
            if status not in _REDIRECTS:
                return answer
            answer.close()
            url = urljoin(url, place or "")
            if method != "GET" or urlsplit(url).scheme not in ("https", urlsplit(self._url).scheme):
                break
        raise GitHubError(f"{method} {urlsplit(url).path}: sent to another place, where nothing of ours goes")

    def _headers(self, url: str, data: bytes | None) -> dict[str, str]:
        found = {"User-Agent": f"trainscope/{__version__}"}
        # A redirect leads to a store that has a signature of its own: the token is GitHub's alone.
        if urlsplit(url)[:2] == urlsplit(self._url)[:2]:
            found |= {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
            if self._token:
                found["Authorization"] = f"Bearer {self._token}"
        if data is not None:
            found["Content-Type"] = "application/json"
        return found


class _NoRedirect(urllib.request.HTTPErrorProcessor):
    """Hands redirects to the caller; everything else of 300 and above stays an error."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:  # noqa: ANN401 - of urllib
        return response if response.status in _REDIRECTS else super().http_response(request, response)

    https_response = http_response


def path_of(repository: str) -> str:
    """Return where the API has a repository, given as ``owner/name``."""
    owner, name = repository.split("/", 1)
    return f"/repos/{segment(owner)}/{segment(name)}"


def segment(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="")


def _message(error: urllib.error.HTTPError) -> str:
    try:
        found = json.loads(error.read(1 << 16))
        return str(found.get("message", ""))[:300] if isinstance(found, dict) else ""
    except (OSError, ValueError, RecursionError, HTTPException):
        return str(error.reason)[:300]


def _wait(error: urllib.error.HTTPError, said: str) -> float | None:
    """Return how long to wait before another try, 0 where nobody says, None where there is no sense in one."""
    asked = error.headers.get("Retry-After", "")
    is_spent = error.code == 403 and error.headers.get("X-RateLimit-Remaining") == "0" and not asked
    # The requests of an hour are used up: nothing changes within a minute.
    if is_spent or (not _is_limited(error, said) and error.code not in _BUSY):
        return None
    seconds = float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0.0
    return None if seconds > LONGEST_WAIT else seconds


def _is_limited(error: urllib.error.HTTPError, said: str) -> bool:
    """Tell whether a refusal is about how often we ask, not about what."""
    asked = error.headers.get("Retry-After") or error.headers.get("X-RateLimit-Remaining") == "0"
    return error.code == TOO_MANY or (error.code == 403 and bool(asked or "rate limit" in said.lower()))


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason or type(error).__name__)
