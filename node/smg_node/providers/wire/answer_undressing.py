"""Answer undressing: a passing answer with the name that the client asked for, without what accounting added. Pure.

Only the places where a dialect names the model are touched, never an argument of a tool that has the same key. The
events of one stream begin alike, so a beginning that was looked through once is only compared.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.providers import hosting
from smg_node.providers.wire.json_members import Member, edited, member, members

_TOP: Final = ("model",)
_PLACES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    hosting.CHAT: (_TOP,),
    hosting.COMPLETIONS: (_TOP,),
    hosting.EMBEDDINGS: (_TOP,),
    hosting.RESPONSES: (("response", "model"), _TOP),
    hosting.MESSAGES: (("message", "model"), _TOP),
    hosting.GENERATE_CONTENT: (("modelVersion",),),
    hosting.INTERACTIONS: (("interaction", "model"), _TOP),
}
"""Where an answer or an event names its model."""
_NULL: Final = b',"usage":null'
_PLAIN_END: Final = re.compile(rb'(?:,"[a-z_]{1,40}":"[^"\\]*+")*+\}')
"""The end of a chunk with nothing but short texts in it: what stands right before is a member of the chunk itself."""
_EMPTY: Final = (b"[]", b"[ ]")


class AnswerUndressing:
    """Undresses the events, or the whole body, of one answer of `dialect`.

    `name` is the model as the client knows it, "" if it knows it as the vendor does. `withhold_usage`: the client did
    not ask for the usage of its stream. What cannot be read passes as it is.
    """

    def __init__(self, dialect: str, name: str, *, withhold_usage: bool = False) -> None:
        self._places = _PLACES.get(dialect, ()) if name else ()
        self._marks = [msgspec.json.encode(place[-1]) for place in self._places]
        self._name = msgspec.json.encode(name)
        self._withhold = withhold_usage
        self._old = self._new = b""
        """The beginning of an event up to its model's name, and what stands for it."""

    def event(self, data: bytes) -> bytes | None:
        """Return one event's data for the client, None for an event that it did not ask for."""
        if self._withhold and b'"usage"' in data:
            kept = _without_usage(data)
            if kept is None:
                return None
            data = kept
        return self.whole(data)

    def whole(self, body: bytes) -> bytes:
        """Return a whole body, or an event's data, with the client's name of the model."""
        if self._old and body.startswith(self._old):
            return self._new + body[len(self._old) :]
        if not any(mark in body for mark in self._marks):
            return body
        found = self._named(body)
        if found is None:
            return body
        self._old = body[: found.end]
        self._new = body[: found.value] + self._name
        return self._new + body[found.end :]

    def _named(self, body: bytes) -> Member | None:
        """Return where the model's name is, if it is a text."""
        try:
            for place in self._places:
                found = member(body, place)
                if found is not None and body[found.value : found.value + 1] == b'"':
                    return found
        except SmgError:
            return None
        return None


def _without_usage(data: bytes) -> bytes | None:
    """Return a chunk without the usage that was asked for by this node; None if it is there only for that."""
    null = data.rfind(_NULL)
    if null > 0 and _PLAIN_END.fullmatch(data, null + len(_NULL)):
        return data[:null] + data[null + len(_NULL) :]
    try:
        there = {one.key: data[one.value : one.end] for one in members(data)}
        usage = there.get("usage")
        if usage == b"null":
            return edited(data, {}, ("usage",))
    except SmgError:
        return data
    if usage is not None and there.get("choices") in _EMPTY and "moderation" not in there:
        return None
    return data
