"""Registry of dialects: every public API of this node, by name, built when it is first used."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.completions.dialect import CompletionsDialect
from smg_node.dialects.dialect import Dialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

CHAT: Final = ChatDialect.name
COMPLETIONS: Final = CompletionsDialect.name


class Dialects(Mapping[str, Dialect]):
    """The dialects; those that many nodes never serve are imported with their first request."""

    def __init__(
        self,
        options: ReaderOptions,
        seals: ThoughtSeals | None = None,
        monotonic_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._options = options
        self._monotonic_s = monotonic_s
        self._seals = ThoughtSeals(PlainVault()) if seals is None else seals
        self._built: dict[str, Dialect] = {
            CHAT: ChatDialect(options),
            COMPLETIONS: CompletionsDialect(options),
        }

    def __getitem__(self, name: str) -> Dialect:
        found = self._built.get(name)
        if found is None:
            found = self._built[name] = _LATER[name](self._options, self._seals, self._monotonic_s)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from (CHAT, COMPLETIONS)
        yield from _LATER

    def __len__(self) -> int:
        return 2 + len(_LATER)


def _messages(
    options: ReaderOptions, seals: ThoughtSeals, monotonic_s: Callable[[], float]
) -> Dialect:
    from smg_node.dialects.messages.dialect import MessagesDialect

    return MessagesDialect(options, seals, monotonic_s)


def _gemini(
    options: ReaderOptions, seals: ThoughtSeals, monotonic_s: Callable[[], float]
) -> Dialect:
    from smg_node.dialects.gemini.dialect import GeminiDialect

    return GeminiDialect(options, seals)


_LATER: Final[
    Mapping[str, Callable[[ReaderOptions, ThoughtSeals, Callable[[], float]], Dialect]]
] = {"messages": _messages, "gemini": _gemini}
"""Makers of the dialects that are imported when they are needed."""
