"""Stream check: what one client received of a streamed chat, compared with an undisturbed run.
Pure.

Bytes and times come in, in any pieces; `problems` compares two hearings and names what is lost,
duplicated, made up or counted wrongly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

_REST_BYTES_MAX: Final = 1 << 20
_ALIKE: Final = 12
"""So many characters alike are no accident: the text goes on from there."""


@dataclass
class Hearing:
    """A received stream, choice by choice. `gap_s` is its longest silence between two events, from
    the first on.
    """

    begun_s: float
    status: int = 0
    worker: str = ""
    """Who was chosen first, as the answer's head says."""
    request: str = ""
    """What the node calls it."""
    texts: dict[int, str] = field(default_factory=dict)
    tokens: dict[int, list[str]] = field(default_factory=dict)
    """The tokens that came with log probabilities."""
    finishes: dict[int, list[str]] = field(default_factory=dict)
    usages: list[Mapping[str, int]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ends: int = 0
    broken: str = ""
    """How the connection ended, if not well."""
    ended_s: float = 0.0
    first_s: float = 0.0
    spoken_s: float = 0.0
    """When the first text came; 0: never."""
    last_s: float = 0.0
    gap_s: float = 0.0
    _rest: bytes = b""

    @property
    def characters(self) -> int:
        """Length of the received text, of all choices."""
        return sum(map(len, self.texts.values()))

    def feed(self, content: bytes, now_s: float) -> None:
        """Parse some bytes of the body."""
        *whole, self._rest = (self._rest + content).split(b"\n\n")
        for block in whole:
            if block.startswith(b"data: "):
                self._event(block[6:], now_s)
        if len(self._rest) > _REST_BYTES_MAX:
            self._rest = b""
            self.errors.append("an event without an end")

    def refused(self, status: int, answer: bytes) -> None:
        """Record that there was no stream, but an answer."""
        self.status = status
        self.errors.append(f"{status} {answer[:200].decode(errors='replace')}")

    def _event(self, payload: bytes, now_s: float) -> None:
        if self.ends:
            self.errors.append("something after the end")
        if self.first_s:
            self.gap_s = max(self.gap_s, now_s - self.last_s)
        else:
            self.first_s = now_s
        self.last_s = now_s
        if payload == b"[DONE]":
            self.ends += 1
            return
        try:
            event = msgspec.json.decode(payload, type=dict[str, Any])
        except msgspec.DecodeError as error:
            self.errors.append(f"no event: {error}")
            return
        if "error" in event:
            self.errors.append(str(event["error"].get("code") or event["error"]))
        if event.get("usage"):
            self.usages.append(event["usage"])
        for choice in event.get("choices") or ():
            self._choice(choice, now_s)

    def _choice(self, choice: Mapping[str, Any], now_s: float) -> None:
        index = choice["index"]
        finishes = self.finishes.setdefault(index, [])
        text = (choice.get("delta") or {}).get("content") or ""
        if text and finishes:
            self.errors.append(f"choice {index} goes on after its end")
        if text and not self.spoken_s:
            self.spoken_s = now_s
        self.texts[index] = self.texts.get(index, "") + text
        rows = (choice.get("logprobs") or {}).get("content") or ()
        self.tokens.setdefault(index, []).extend(row["token"] for row in rows)
        if choice.get("finish_reason"):
            finishes.append(choice["finish_reason"])


def problems(heard: Hearing, right: Hearing) -> list[str]:
    """Return all differences of a hearing from the undisturbed one, in words; nothing if it is
    right.
    """
    found = [f"ends with {error}" for error in heard.errors]
    if heard.broken:
        found.append(heard.broken)
    found += [
        f"choice {index}: {_differs(heard.texts.get(index, ''), text)}"
        for index, text in right.texts.items()
        if heard.texts.get(index, "") != text
    ]
    if set(heard.texts) - set(right.texts):
        found.append("a choice that nobody asked for")
    if heard.errors or heard.broken:
        # It did not end: how an end looks is no question then, except that none may be made up.
        if any(
            heard.finishes.get(i) for i, text in right.texts.items() if heard.texts.get(i) != text
        ):
            found.append("an end is made up")
        return found
    if heard.finishes != right.finishes:
        found.append(f"finished with {heard.finishes}, not {right.finishes}")
    if heard.tokens != right.tokens:
        found.append("log probabilities of other tokens")
    if [_counted(one) for one in heard.usages] != [_counted(one) for one in right.usages]:
        found.append(f"usage is {heard.usages}, not {right.usages}")
    if heard.ends != 1:
        found.append(f"{heard.ends} ends of the stream")
    return found


def _counted(usage: Mapping[str, int]) -> tuple[int, ...]:
    """Return what was counted; cached tokens are another matter each time."""
    return tuple(usage.get(f"{what}_tokens", -1) for what in ("prompt", "completion", "total"))


def _differs(said: str, right: str) -> str:
    """Return how a text went wrong, from the first character that did."""
    at = next(
        (at for at, (one, other) in enumerate(zip(said, right, strict=False)) if one != other),
        min(len(said), len(right)),
    )
    if at == len(said):
        return f"{len(right) - at} of {len(right)} characters are missing at the end"
    where = f"after {at} of {len(right)} characters"
    if at == len(right):
        return f"{where} comes more: {said[at : at + 20]!r}"
    again = right.find(said[at : at + _ALIKE])
    if len(said) - at >= _ALIKE and 0 <= again < at:
        return f"{where} it says {at - again} again"
    if len(said) - at >= _ALIKE and again > at:
        return f"{where} it leaves out {again - at}"
    return f"{where} comes {said[at : at + 20]!r}, not {right[at : at + 20]!r}"
