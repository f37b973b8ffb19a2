"""The official client over a wire that somebody listens to.

client  →  transport  →  node
              └─ hear(exchange), once an answer has come whole, or its reader or the node has had enough
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from openai import OpenAI

from support.clients.stream_judge import DONE, frames_of


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call as it went over the wire. `events` are those of a stream, `body` is anything else.

    `whole`: it came to its end. `broken`: it did not, and that was not the client's wish.
    """

    method: str
    path: str
    status: int
    asked: object
    headers: Mapping[str, str]
    body: bytes
    events: tuple[bytes, ...] = ()
    whole: bool = True
    broken: bool = False

    @property
    def streamed(self) -> bool:
        """Whether it is a stream of events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")


Hear = Callable[[Exchange], None]


@contextmanager
def overheard(hear: Hear, *, timeout_s: float = 60.0) -> Iterator[httpx2.Client]:
    """Yield what clients speak through while `hear` is told all of it."""
    with httpx2.Client(transport=_Listening(hear), timeout=timeout_s) as wire:
        yield wire


def client_of(url: str, wire: httpx2.Client, *, key: str = "none") -> OpenAI:
    """Return the official client of a node, which never tries anything again."""
    return OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=wire)


class _Listening(httpx2.BaseTransport):
    def __init__(self, hear: Hear) -> None:
        self._inner = httpx2.HTTPTransport()
        self._hear = hear

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self._inner.handle_request(request)

        def done(raw: bytes, *, ended: bool, broken: bool) -> None:
            self._hear(_exchange(request, answer, raw, ended=ended, broken=broken))

        assert isinstance(answer.stream, httpx2.SyncByteStream)
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Overheard(answer.stream, done),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._inner.close()


class _Overheard(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, done: Callable[..., None]) -> None:
        self._inner = inner
        self._done = done
        self._got: list[bytes] = []
        self._told = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                self._got.append(chunk)
                yield chunk
        except httpx2.TransportError:
            self._tell(broken=True)
            raise
        self._tell(ended=True)

    def close(self) -> None:
        self._inner.close()
        self._tell()

    def _tell(self, *, ended: bool = False, broken: bool = False) -> None:
        if not self._told:
            self._told = True
            self._done(b"".join(self._got), ended=ended, broken=broken)


def _exchange(
    request: httpx2.Request, answer: httpx2.Response, raw: bytes, *, ended: bool, broken: bool
) -> Exchange:
    streamed = answer.headers.get("content-type", "").startswith("text/event-stream")
    events = frames_of(raw) if streamed else ()
    # A client may stop reading at the last frame, before the connection has said that it was the last.
    whole = events[-1:] == (DONE,) if streamed else ended
    return Exchange(
        method=request.method,
        path=request.url.raw_path.decode(),
        status=answer.status_code,
        asked=json.loads(request.content) if request.content else None,
        headers=dict(answer.headers),
        body=raw,
        events=events,
        whole=whole,
        broken=broken or (streamed and ended and not whole),
    )
