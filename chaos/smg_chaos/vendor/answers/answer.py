"""Answer of a stand-in in no vendor's form: thought, text, calls, why it ended, and what it cost."""

from typing import Any, Literal

import msgspec

from smg_chaos.vendor.answers.token_counts import slices_of
from smg_chaos.vendor.wire.sse import encode

Ending = Literal["stop", "calls", "length", "refusal", "filter", "stop_sequence"]


class CallMade(msgspec.Struct, frozen=True):
    """One call. `slices` are its arguments as JSON, in the pieces that are streamed."""

    name: str
    arguments: dict[str, Any]

    @property
    def slices(self) -> tuple[str, ...]:
        """Return the arguments' pieces; each is a token."""
        return slices_of(self.text)

    @property
    def text(self) -> str:
        """Return the arguments as JSON."""
        return encode(self.arguments).decode()


class Cost(msgspec.Struct, frozen=True):
    """Tokens: all of the prompt, those read from the cache, those written to it (of them for an hour), all of the
    answer, and of them those of thoughts.
    """

    prompt: int
    cached: int = 0
    written: int = 0
    written_long: int = 0
    answer: int = 0
    thought: int = 0

    @property
    def new(self) -> int:
        """Return the prompt's tokens that the cache has nothing to do with."""
        return self.prompt - self.cached - self.written


class Draft(msgspec.Struct, frozen=True):
    """What is said, before anybody counts. `redacted`: the thought is not shown at all."""

    thought: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    calls: tuple[CallMade, ...] = ()
    ending: Ending = "stop"
    redacted: bool = False
    stop: str = ""

    @property
    def tokens(self) -> int:
        """Return the tokens of all of it."""
        return len(self.thought) + len(self.text) + sum(len(one.slices) for one in self.calls)


class Answer(msgspec.Struct, frozen=True):
    """A draft, its cost, and how its ids begin, which are made from the request."""

    draft: Draft
    cost: Cost
    seed: str
    created_s: int
    shows_thoughts: bool = True

    @property
    def thought(self) -> str:
        """Return the thought's text, "" if it is not shown."""
        shown = self.shows_thoughts and not self.draft.redacted
        return "".join(self.draft.thought) if shown else ""

    @property
    def thinks(self) -> bool:
        """Whether there is a thought, shown or not."""
        return bool(self.draft.thought)

    @property
    def text(self) -> str:
        """Return the text."""
        return "".join(self.draft.text)

    @property
    def calls(self) -> tuple[CallMade, ...]:
        """Return the calls."""
        return self.draft.calls

    def name(self, prefix: str, number: int = 0) -> str:
        """Return an id, the same whenever the same is asked."""
        return f"{prefix}{self.seed}{number:02x}"
