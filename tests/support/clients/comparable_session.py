"""A session as anybody would tell it: what was asked and answered, without what is drawn anew each time.

Ids become their kind and the number of their first appearance, times and sealed texts become what they are. Deltas of
one text are joined: where a text is cut depends on the weather. What an engine had cached depends on who was there before.
All else stays, to the last token that was counted.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from support.clients.recorded_client import Exchange
from support.clients.stream_judge import DONE

_SERVED: Final = re.compile(r"served are .*")
"""The models of a node, which are its own."""
_ID: Final = re.compile(r"\b(resp|conv|msg|rs|fc|fco|ctc|ctco|cmp|ext|[a-z]{2,4})_[0-9a-f]{48}\b")
_TIMES: Final = ("created_at", "completed_at")
_SEALED: Final = "encrypted_content"
_CACHED: Final = "cached_tokens"


class Retelling:
    """Tells exchanges, each id always by the same name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, exchanges: Iterable[Exchange]) -> list[str]:
        """Return a line for each call, and what came of it."""
        return [json.dumps(self._exchange(one), sort_keys=True) for one in exchanges]

    def fact(self, value: Any) -> str:
        """Return an object, or the events of a stream, as a line."""
        events = isinstance(value, list) and value and "sequence_number" in value[0]
        return json.dumps(self._plain(joined(value) if events else value), sort_keys=True)

    def _exchange(self, one: Exchange) -> Any:
        answer: Any = [self._plain(event) for event in joined(_decoded(one.events))]
        if not one.events:
            answer = self._plain(json.loads(one.body))
        return {
            "asked": [one.method, self._text(one.path), self._plain(one.asked)],
            "answered": [one.status, one.headers.get("x-smg-history"), answer],
        }

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._field(key, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._plain(element) for element in value]
        return self._text(value) if isinstance(value, str) else value

    def _field(self, key: str, value: Any) -> Any:
        if key in _TIMES and value is not None:
            return "a time"
        if key == _SEALED and value:
            return "sealed"
        if key == _CACHED:
            return "some"
        return self._plain(value)

    def _text(self, text: str) -> str:
        return _SERVED.sub("served are some", _ID.sub(self._named, text))

    def _named(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"{found[1]}_{len(self._names)}")


def _decoded(events: Iterable[bytes]) -> list[Any]:
    return [json.loads(raw) for raw in events if raw != DONE]


def joined(events: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the events without their numbers, deltas that follow one another as one."""
    told: list[Any] = []
    for one in events:
        event = {key: value for key, value in one.items() if key != "sequence_number"}
        bare = {key: value for key, value in event.items() if key not in ("delta", "logprobs")}
        last = told[-1] if told else {}
        if "delta" in event and bare == {key: last.get(key) for key in bare}:
            last["delta"] += event["delta"]
            last["logprobs"] = [*last.get("logprobs", ()), *event.get("logprobs", ())]
        else:
            told.append(event)
    return told
