"""Realtime session for tests: fed by hand, every frame read as the official SDK reads it, the conversation followed by events."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, cast, get_args

from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel

from smg_node.core.generation.events import Event
from smg_node.dialects.realtime.effects import Effect, RateLimit, Send, Start
from smg_node.dialects.realtime.session import Session
from smg_node.dialects.realtime.session_options import SessionOptions
from smg_storage.ids import new_id, new_thread

NOW_MS: Final = 1_800_000_000_000
MODEL: Final = "m"
_CLASSES: Final[Mapping[str, type[BaseModel]]] = {
    get_args(each.model_fields["type"].annotation)[0]: each
    for each in cast("tuple[type[BaseModel], ...]", get_args(get_args(RealtimeServerEvent)[0]))
}
"""How the official SDK reads each type of event."""
_EXTRA: Final = frozenset({"id", "object", "expires_at", "temperature", "top_p"})
"""What servers say beyond the SDK's types: all of them of sessions."""
_OPEN: Final = ("parameters", "metadata")
"""Fields whose content is the client's own."""


class RealtimeClient:
    """A session and what a client knows of it. `events` are all that was said, `effects` all that was wanted."""

    def __init__(self, options: SessionOptions | None = None, *, seed: int = 1) -> None:
        chance = Random(seed)
        thread = new_thread(chance)
        ids = [new_id(p, thread, now_ms=NOW_MS, chance=chance) for p in ("sess", "conv")]
        self.now_ms = NOW_MS
        self.session = Session(
            MODEL,
            session_id=ids[0],
            conversation_id=ids[1],
            now_ms=NOW_MS,
            chance=chance,
            options=options or SessionOptions(),
        )
        self.conversation_id = ids[1]
        self.events: list[dict[str, Any]] = []
        self.effects: list[Effect] = []
        self.order: list[str] = []
        """Ids of the conversation's items, as its events tell."""
        self.take(self.session.open(now_ms=NOW_MS))

    def send(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Send an event, and return what is said at once."""
        return self.send_raw(json.dumps({"type": kind, **fields}).encode())

    def send_raw(self, frame: bytes) -> list[dict[str, Any]]:
        """Send a text frame, and return what is said at once."""
        return self.take(self.session.client(frame, now_ms=self.now_ms))

    def say(self, text: str, **fields: Any) -> str:
        """Add a message of the user, and return its id."""
        item = user(text, **fields)
        return str(self.send("conversation.item.create", item=item)[0]["item"]["id"])

    def ask(self, **fields: Any) -> Start:
        """Ask for an answer, and return its start."""
        told = self.send("response.create", **fields)
        assert not told, told
        start = self.effects[-1]
        assert isinstance(start, Start)
        return start

    def feed(self, response_id: str, events: Sequence[Event]) -> list[dict[str, Any]]:
        """Tell the session of a generation's events, and return what is said."""
        return self.take(self.session.generation(response_id, events, now_ms=self.now_ms))

    def start(self, response_id: str, *limits: RateLimit) -> list[dict[str, Any]]:
        """Tell the session that an answer was admitted, and return what is said."""
        return self.take(self.session.started(response_id, rate_limits=limits))

    def take(self, effects: Sequence[Effect]) -> list[dict[str, Any]]:
        """Keep effects, and return the events among them, each looked at as the SDK would."""
        self.effects += effects
        told = [read_event(one.frame) for one in effects if isinstance(one, Send)]
        for event in told:
            assert not self.events or event["event_id"] > self.events[-1]["event_id"]
            self.events.append(event)
            self._follow(event)
        return told

    def _follow(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "conversation.item.deleted":
            self.order.remove(event["item_id"])
        elif kind == "conversation.item.added":
            previous = event["previous_item_id"]
            place = 0 if previous is None else self.order.index(previous) + 1
            assert event["item"]["id"] not in self.order
            self.order.insert(place, event["item"]["id"])
        elif kind == "conversation.item.done":
            place = self.order.index(event["item"]["id"])
            assert event["previous_item_id"] == (self.order[place - 1] if place else None)


def user(text: str, **fields: Any) -> dict[str, Any]:
    """Return a message of the user."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, **fields}


def read_event(frame: bytes) -> dict[str, Any]:
    """Return an event; every field of it is one that the official SDK knows, of the type that it expects."""
    assert b"\n" not in frame
    event: dict[str, Any] = json.loads(frame)
    kind = _CLASSES[event["type"]]
    read = kind.model_validate_json(frame, strict=True)
    _check_known(read, event["type"])
    return event


def _check_known(read: BaseModel, where: str) -> None:
    """Nothing is said that the SDK has no field for, but what is marked as ours."""
    for key in read.model_extra or {}:
        assert key in _EXTRA or key.startswith("x_smg_"), f"{where}.{key}"
    for key in read.model_fields_set:
        value = getattr(read, key, None)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, BaseModel) and key not in _OPEN:
                _check_known(each, f"{where}.{key}")


def types(told: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the types of these events."""
    return [str(one["type"]) for one in told]


def error_of(told: Sequence[Mapping[str, Any]]) -> tuple[str, str | None, str | None]:
    """Return code, parameter and client's event of the one error that these are."""
    assert types(told) == ["error"], told
    error = told[0]["error"]
    return error["code"], error["param"], error["event_id"]
