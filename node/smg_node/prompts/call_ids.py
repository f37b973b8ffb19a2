"""Call ids of earlier tool calls, rewritten into the form that a family's templates and models
want. Pure.

A client's ids come from wherever: our own, another server's, none at all. Most templates print none. Some do,
and their models learnt one form of them; some refuse any other form. What already has that form stays.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec.structs import replace

from smg_node.core.generation.request import ToolCall, Turn

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MISTRAL_LENGTH: Final = 9


class _Family(Protocol):
    """Names the calls of one conversation, in order."""

    def name(self, call: ToolCall, place: int) -> str:
        """Return the id of the next call, the one at `place` in its turn."""
        ...


@dataclass(slots=True)
class _Kimi:
    """`functions.NAME:IDX`, counted over the whole conversation."""

    next: int = 0
    taken: set[str] = field(default_factory=set)

    def name(self, call: ToolCall, place: int) -> str:
        head, _, index = call.call_id.rpartition(":")
        native = head == f"functions.{call.name}" and index.isascii() and index.isdigit()
        if native and len(index) < 10 and call.call_id not in self.taken:
            named = call.call_id
            self.next = max(self.next, int(index) + 1)
        else:
            named = f"functions.{call.name}:{self.next}"
            self.next += 1
        self.taken.add(named)
        return named


@dataclass(slots=True)
class _KimiK3:
    """`NAME:ORDINAL`, counted in each message."""

    def name(self, call: ToolCall, place: int) -> str:
        return f"{call.name}:{place}"


@dataclass(slots=True)
class _Cohere:
    """A number, counted over the whole conversation."""

    next: int = 0

    def name(self, call: ToolCall, place: int) -> str:
        named = str(self.next)
        self.next += 1
        return named


@dataclass(slots=True)
class _Mistral:
    """Nine letters and digits; any other id is given nine that depend on nothing but itself."""

    unnamed: int = 0

    def name(self, call: ToolCall, place: int) -> str:
        said = call.call_id
        if not said:
            said = f"unnamed {self.unnamed}"
            self.unnamed += 1
        if len(said) == _MISTRAL_LENGTH and said.isascii() and said.isalnum():
            return said
        number = int.from_bytes(hashlib.sha256(said.encode("utf-8", "replace")).digest())
        letters = []
        for _ in range(_MISTRAL_LENGTH):
            number, at = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[at])
        return "".join(letters)


_FAMILIES: Final[dict[str, Callable[[], _Family]]] = {
    "kimi_k2": _Kimi,
    "kimi_k3": _KimiK3,
    "cohere": _Cohere,
    "cofl": _Cohere,
    "mistral": _Mistral,
}


def with_ids(turns: Sequence[Turn], family: str) -> Sequence[Turn]:
    """Return the turns with the ids of calls, and of their results, as `family` wants them.

    The very same turns for a family that does not care. A result belongs to the latest call of its id; of
    several with one id in a turn, to the first that has none yet. The result of no known call keeps its id.
    """
    make = _FAMILIES.get(family)
    if make is None or not any(turn.calls for turn in turns):
        return turns
    names = make()
    renamed: list[Turn] = []
    waiting: dict[str, list[str]] = {}
    for turn in turns:
        if turn.calls:
            calls = [
                replace(call, call_id=names.name(call, place))
                for place, call in enumerate(turn.calls)
            ]
            new: dict[str, list[str]] = {}
            for old, call in zip(turn.calls, calls, strict=True):
                new.setdefault(old.call_id, []).append(call.call_id)
            waiting.update(new)
            turn = replace(turn, calls=tuple(calls))
        elif turn.answers_call is not None and turn.answers_call in waiting:
            ids = waiting[turn.answers_call]
            turn = replace(turn, answers_call=ids.pop(0) if len(ids) > 1 else ids[0])
        renamed.append(turn)
    return renamed
