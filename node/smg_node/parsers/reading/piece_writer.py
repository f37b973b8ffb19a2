"""Piece writer: joins neighbouring pieces of one kind, and drops blank text beside a call.

A run of text that is nothing but white space and touches a call is how models lay out their markers, not
something they say. So the white space that begins a run is held until the run says something, or until
it is clear that no call is beside it.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text

NewId: TypeAlias = Callable[[str, int], str]
"""Makes the id of a call of a function, given how many calls there were before it in this answer."""

BLANK_MAX: Final = 1 << 20
"""Characters of white space held; a longer run is said, beside a call too."""


class Outlet:
    """Collector of the pieces that one scanner emits during one feed."""

    __slots__ = (
        "_after_call",
        "_blank",
        "_blank_size",
        "_kind",
        "_new_id",
        "_out",
        "_parts",
        "_said",
        "calls",
        "closed",
    )

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._out: list[Piece] = []
        self._kind: type[Text] | type[Reasoning] | type[Arguments] | None = None
        self._parts: list[str] = []
        self._blank: list[str] = []
        self._blank_size = 0
        self._said = False
        self._after_call = False
        self.calls = 0
        """How many calls have been said."""
        self.closed = 0
        """How many of them are known to be complete."""

    @property
    def fresh(self) -> bool:
        """Whether nothing but white space was emitted since the start, a thought or a call."""
        return not self._said

    @property
    def behind_call(self) -> bool:
        """Whether a call was the last thing that was said."""
        return self._after_call

    @property
    def holds(self) -> bool:
        """Whether there is white space of which it is not clear yet whether it is emitted."""
        return self._blank_size > 0

    @property
    def settled(self) -> bool:
        """Whether a part of a thought could leave past this outlet: no call and no white space waits for its end."""
        return not (self._after_call or self._blank_size)

    def take(self) -> Sequence[Piece]:
        """Return the pieces since the last time."""
        if self._kind is not None:
            self._flush()
        out = self._out
        if out:
            self._out = []
        return out

    def text(self, text: str) -> None:
        """Emit text of the answer."""
        if self._said:
            if text:
                self._add(Text, text)
        elif not text:
            return
        elif text.isspace() and self._blank_size + len(text) <= BLANK_MAX:
            self._blank.append(text)
            self._blank_size += len(text)
        else:
            self._let_blank_out()
            self._said = True
            self._after_call = False
            self._add(Text, text)

    def reasoning(self, text: str) -> None:
        """Emit a part of a thought."""
        if text:
            self.end()
            self._add(Reasoning, text)

    def call(self, name: str, printed_id: str = "") -> None:
        """Start a call; its id is the one the model printed, or a new one."""
        self._blank, self._blank_size = [], 0
        self._said = False
        self._after_call = True
        if self._kind is not None:
            self._flush()
        self._out.append(Call(name, printed_id or self._new_id(name, self.calls)))
        self.calls += 1

    def arguments(self, text: str) -> None:
        """Emit a part of the last call's arguments."""
        if text:
            self._add(Arguments, text)

    def thought(self) -> None:
        """Begin a thought: if nothing but white space was emitted since the last piece, that was
        layout.
        """
        self._blank, self._blank_size = [], 0
        self.end()

    def end_call(self) -> None:
        """Note that the last call is complete."""
        self.closed = self.calls

    def end(self) -> None:
        """End a run of text: white space that touches no call is emitted."""
        if not self._after_call:
            self._let_blank_out()
        self._blank, self._blank_size = [], 0
        self._said = False
        self._after_call = False

    def _let_blank_out(self) -> None:
        if self._blank:
            self._add(Text, "".join(self._blank))
            self._blank, self._blank_size = [], 0

    def _add(self, kind: type[Text] | type[Reasoning] | type[Arguments], text: str) -> None:
        if self._kind is not kind and self._kind is not None:
            self._flush()
        self._kind = kind
        self._parts.append(text)

    def _flush(self) -> None:
        assert self._kind is not None
        parts = self._parts
        self._out.append(self._kind(parts[0] if len(parts) == 1 else "".join(parts)))
        self._kind, self._parts = None, []
