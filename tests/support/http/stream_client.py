"""A node's streams as they come over the wire, however they end; and plain answers beside them."""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from support.processes.node import RunningNode

WAIT_S: Final = 60.0


@dataclass
class Heard:
    """What a stream told, until it ended or broke off."""

    status: int = 0
    told: list[NumberedEvent] = field(default_factory=list)
    done: bool = False
    over_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


def hear(
    node: RunningNode, method: str, path: str, body: Any = None, heard: Heard | None = None
) -> Heard:
    """Ask a node for a stream, and listen to its end, whichever it is."""
    heard = Heard() if heard is None else heard
    where = urlsplit(node.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=WAIT_S)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        heard.status, heard.headers = answer.status, dict(answer.headers)
        for line in answer:
            _take(line.rstrip(b"\n"), heard)
    except (OSError, http.client.HTTPException):
        # It broke off.
        pass
    finally:
        heard.over_s = time.monotonic()
        connection.close()
    return heard


def _take(line: bytes, heard: Heard) -> None:
    name, _, value = line.partition(b": ")
    if name != b"data":
        return
    assert not heard.done, "nothing follows [DONE]"
    if value == b"[DONE]":
        heard.done = True
        return
    event = json.loads(value)
    heard.told.append(NumberedEvent(event["sequence_number"], event["type"], value))


def get(node: RunningNode, path: str) -> tuple[int, Any]:
    """Return status and body of a GET."""
    return ask(node, "GET", path)


def ask(node: RunningNode, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Return status and body of an answer that is no stream; status 0 if there is none."""
    where = urlsplit(node.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=WAIT_S)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()
