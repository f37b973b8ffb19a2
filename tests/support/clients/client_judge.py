"""Who judges all that nodes say to the official client: the SDK's types, the open schema, and what was said before.

A judge collects objections and never raises, so that a client sees nothing of it; `Judge.check` does. What was said
once holds: a response that is over is told the same by everybody, and so is every event by its number.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from support.clients import sdk_validation
from support.clients.open_responses_schema import ITEM_TYPES, wrong_with
from support.clients.recorded_client import Exchange, client_of, overheard
from support.clients.stream_judge import (
    DONE,
    TERMINAL,
    open_response,
    wrong_with_events,
    wrong_with_stream,
)

__all__ = ["Exchange", "Judge", "client_of", "listened"]

_IDS: Final = r"[A-Za-z0-9_-]+"
_ERROR_KEYS: Final = {"message", "type", "param", "code"}


@dataclass
class Judge:
    """Hears every call of a session, whoever answers it. `may_break`: whether nodes may die under a stream."""

    heard: list[Exchange] = field(default_factory=list)
    objections: list[str] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)
    """Stored responses that are over, by id, as they were first told."""
    events: dict[tuple[str, int], bytes] = field(default_factory=dict)
    """Events of responses of the background, by id and number, as they were first told."""
    may_break: bool = False

    def check(self) -> None:
        """Raise if there was anything to object to."""
        assert not self.objections, "\n".join(self.objections)

    def hear(self, exchange: Exchange) -> None:
        """Take what was said on one call."""
        self.heard.append(exchange)
        path = f"{exchange.method} {exchange.path.partition('?')[0]}"
        wrong = list(self._wrong(exchange, path))
        self.objections += [f"{len(self.heard)}. {path} ({exchange.status}): {it}" for it in wrong]

    def _wrong(self, exchange: Exchange, path: str) -> Iterator[str]:
        if exchange.broken and not self.may_break:
            yield f"the node broke off: {exchange.events[-1:]}"
        if exchange.status >= 400:
            yield from _wrong_with_error(exchange.body)
        elif exchange.streamed:
            yield from self._wrong_with_stream(exchange)
        elif exchange.whole:
            yield from _wrong_with_body(path, exchange.body)
            if re.fullmatch(rf"(POST|GET) /v1/responses(/resp_{_IDS}(/cancel)?)?", path):
                yield from self._told(json.loads(exchange.body))

    def _wrong_with_stream(self, exchange: Exchange) -> Iterator[str]:
        events = tuple(event for event in exchange.events if event != DONE)
        if exchange.whole and events:
            begins = "starting_after" not in exchange.path
            yield from wrong_with_stream(exchange.events, begins=begins)
        else:
            yield from wrong_with_events(events)
        if not events:
            return
        told = [json.loads(event) for event in events]
        whole = [event["response"] for event in told if "response" in event]
        named = re.search(rf"/(resp_{_IDS})", exchange.path)
        response_id = named[1] if named else whole[0]["id"]
        # Others have no log: what is told of them afterwards is told anew, with numbers of its own.
        if self._is_logged(response_id, whole):
            for event, raw in zip(told, events, strict=True):
                before = self.events.setdefault((response_id, event["sequence_number"]), raw)
                if before != raw:
                    yield f"event {event['sequence_number']} was {before!r} and is {raw!r}"
        if told[-1]["type"] in TERMINAL:
            yield from self._told(whole[-1])

    def _is_logged(self, response_id: str, whole: list[Any]) -> bool:
        return (response_id, 0) in self.events or any(one["background"] for one in whole)

    def _told(self, values: Mapping[str, Any]) -> Iterator[str]:
        """What is told of a response that is over is the same for ever, whoever tells it."""
        if values["status"] in ("queued", "in_progress") or not values["store"]:
            return
        body = json.dumps(values).encode()
        before = self.kept.setdefault(values["id"], body)
        if before != body:
            yield f"{values['id']} was {before!r} and is {body!r}"


def listened(judge: Judge) -> AbstractContextManager[httpx2.Client]:
    """Return what official clients speak through while `judge` hears all of it."""
    return overheard(judge.hear)


# ── Bodies ───────────────────────────────────────────────────────────────────


def _wrong_with_body(path: str, body: bytes) -> Iterator[str]:
    for pattern, judge in _JUDGES:
        if re.fullmatch(pattern, path):
            yield from judge(body)
            return
    yield "nobody knows how to judge this"


def _wrong_with_error(body: bytes) -> Iterator[str]:
    error = json.loads(body).get("error")
    if type(error) is not dict or _ERROR_KEYS - error.keys():
        yield f"{body!r} is no error"
    elif not error["message"] or not error["type"]:
        yield f"{body!r} says nothing"


def _response(body: bytes) -> Iterator[str]:
    yield from sdk_validation.opinion_of_response(body)
    yield from wrong_with("Response", open_response(json.loads(body)))


def _compaction(body: bytes) -> Iterator[str]:
    yield from sdk_validation.opinion_of_compaction(body)
    yield from wrong_with("Compaction", json.loads(body))


def _items(*, own: bool) -> Callable[[bytes], Iterator[str]]:
    def judge(body: bytes) -> Iterator[str]:
        yield from sdk_validation.opinion_of_list(body, own=own)
        for item in json.loads(body)["data"]:
            yield from _open_item(item)

    return judge


def _item(body: bytes) -> Iterator[str]:
    yield from sdk_validation.opinion_of_item(body)
    yield from _open_item(json.loads(body))


def _open_item(item: Mapping[str, Any]) -> Iterator[str]:
    if item["type"] in ITEM_TYPES:
        yield from wrong_with("Item", item)


def _deleted(body: bytes) -> Iterator[str]:
    values = json.loads(body)
    if values != {"id": values.get("id"), "object": "response", "deleted": True}:
        yield f"{body!r} does not say that a response is gone"


def _conversation(body: bytes) -> Iterator[str]:
    yield from sdk_validation.opinion_of_conversation(body)


def _count(body: bytes) -> Iterator[str]:
    yield from sdk_validation.opinion_of_count(body)


_RESPONSE: Final = rf"/v1/responses/resp_{_IDS}"
_ROOM: Final = rf"/v1/conversations/conv_{_IDS}"
_JUDGES: Final[tuple[tuple[str, Callable[[bytes], Iterator[str]]], ...]] = (
    (r"POST /v1/responses", _response),
    (rf"GET {_RESPONSE}", _response),
    (rf"POST {_RESPONSE}/cancel", _response),
    (rf"DELETE {_RESPONSE}", _deleted),
    (rf"GET {_RESPONSE}/input_items", _items(own=True)),
    (r"POST /v1/responses/compact", _compaction),
    (r"POST /v1/responses/input_tokens", _count),
    (r"POST /v1/conversations", _conversation),
    (rf"(GET|POST|DELETE) {_ROOM}", _conversation),
    (rf"(GET|POST) {_ROOM}/items", _items(own=False)),
    (rf"GET {_ROOM}/items/{_IDS}", _item),
    (rf"DELETE {_ROOM}/items/{_IDS}", _conversation),
)
