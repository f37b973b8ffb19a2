"""Streams of responses as bytes on the wire: read as far as wanted, and cut into their events."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

DONE = b"data: [DONE]"
_NUMBER = re.compile(rb'"sequence_number":(\d+)')


class Reading:
    """A stream under way; `frames` are its events so far, comments left out."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.frames: list[bytes] = []
        self._chunks = response.iter_raw()
        self._rest = b""

    @property
    def last(self) -> int:
        """The number of the last event that came; -1 if none has."""
        numbered = [frame for frame in self.frames if frame != DONE]
        return number_of(numbered[-1]) if numbered else -1

    def more(self) -> bool:
        """Read what comes next; False at the clean end. httpx2.RemoteProtocolError or ReadError if it is broken off."""
        chunk = next(self._chunks, None)
        if chunk is None:
            assert not self._rest
            return False
        *frames, self._rest = (self._rest + chunk).split(b"\n\n")
        self.frames += [frame for frame in frames if not frame.startswith(b":")]
        return True

    def until(self, number: int) -> None:
        """Read until the event with that number has come."""
        while self.last < number:
            assert self.more(), self.frames

    def to_end(self) -> list[bytes]:
        """Read to the clean end, and return the events of all of it."""
        while self.more():
            pass
        assert self.frames
        assert self.frames[-1] == DONE, self.frames[-1]
        return self.frames[:-1]


def number_of(frame: bytes) -> int:
    found = _NUMBER.search(frame)
    assert found is not None, frame
    return int(found[1])


def object_of(frame: bytes) -> dict[str, Any]:
    """Return the response in an event that has one."""
    decoded: dict[str, Any] = json.loads(frame.partition(b"\ndata: ")[2])["response"]
    return decoded


@contextmanager
def created(wire: httpx2.Client, url: str, **body: Any) -> Iterator[Reading]:
    """Ask for a new response as a stream."""
    asked = {"model": "parrot", "stream": True, **body}
    with wire.stream("POST", f"{url}/v1/responses", json=asked) as response:
        assert response.status_code == 200, response.read()
        yield Reading(response)


@contextmanager
def followed(
    wire: httpx2.Client, url: str, response_id: str, after: int | None = None
) -> Iterator[Reading]:
    """Pick a stream up again."""
    query = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
    path = f"{url}/v1/responses/{response_id}"
    with wire.stream("GET", path, params=query) as response:
        assert response.status_code == 200, response.read()
        yield Reading(response)


def whole(wire: httpx2.Client, url: str, response_id: str, after: int | None = None) -> list[bytes]:
    """Return all events after a number."""
    with followed(wire, url, response_id, after) as reading:
        return reading.to_end()
