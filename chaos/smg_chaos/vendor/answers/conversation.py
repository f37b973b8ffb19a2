"""Conversation as a request has it, in no vendor's form: what is said, offered, and wanted."""

from typing import Any

import msgspec

from smg_chaos.vendor.answers.token_counts import text_tokens


class Tool(msgspec.Struct, frozen=True):
    """One function that may be called."""

    name: str
    schema: dict[str, Any]


class Segment(msgspec.Struct, frozen=True):
    """One piece of the prompt, in the vendor's order of caching. `ttl_s`: the client marked its end for the cache."""

    content: bytes
    tokens: int
    ttl_s: int | None = None


class Conversation(msgspec.Struct, kw_only=True):
    """One request.

    `said` is the last text of the user; `results` are the results in the turn after it that is being answered, and
    `rounds` how many such turns there were. `choice` is "auto", "none", "any", or "named" with `named`.
    """

    model: str
    segments: list[Segment] = []
    said: str = ""
    results: list[str] = []
    rounds: int = 0
    turns: int = 0
    system: str = ""
    images: int = 0
    tools: list[Tool] = []
    choice: str = "auto"
    named: str = ""
    parallel: bool = True
    thinks: bool = False
    shows_thoughts: bool = True
    schema: dict[str, Any] | None = None
    wants_json: bool = False
    answer_max: int | None = None
    stops: list[str] = []
    streamed: bool = False

    @property
    def prompt_tokens(self) -> int:
        """Return the length of the prompt."""
        return sum(one.tokens for one in self.segments)

    def add(self, content: bytes, ttl_s: int | None = None) -> None:
        """Take the next piece of the prompt."""
        self.segments.append(Segment(content, text_tokens(content), ttl_s))

    def user(self, text: str) -> None:
        """Take what a user said; results before it belong to earlier answers."""
        self.said = text
        self.results = []
        self.rounds = 0

    def result(self, text: str, *, first: bool) -> None:
        """Take the result of a call; `first` in its turn."""
        if first:
            self.results = []
            self.rounds += 1
        self.results.append(text)
