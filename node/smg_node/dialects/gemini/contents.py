"""Contents to turns: reads the `contents` of a request into the turns that templates render.

Neighbouring contents of the model are one turn: chats of official clients keep each frame of a stream as
a content of its own. A turn's thought is made of its `thought` texts up to a signature; where a client
returns the signature alone, it is what the signature carries. A result without an id answers the first
unanswered call of its name. A turn with opaque state of a vendor also has its blocks, each with its own; the state
that stands on an empty text belongs to the text before it.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import Part, TextPart, ToolCall, Turn
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.gemini.parts import (
    EXECUTED,
    kind_of_part,
    read_call,
    read_media,
    read_result,
)
from smg_node.dialects.gemini.signatures import State, state_in
from smg_node.dialects.gemini.spelling import spelled
from smg_node.dialects.gemini.turn_blocks import TurnBlocks
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.options import ReaderOptions

Opened: TypeAlias = Callable[[str], str | None]
"""Returns the thought that a signature carries, if it is one of ours."""

_ROLES: Final = ("user", "model", "function")
_CONTENT_KEYS: Final = frozenset({"role", "parts"})
_MODEL: Final = "model"
_BETWEEN_THOUGHTS: Final = "\n\n"


def read_contents(
    cursor: Cursor, key: str, options: ReaderOptions, opened: Opened
) -> tuple[Turn, ...]:
    """Return the turns of the contents at `key`; everything wrong with them is noted."""
    reader = _Reader(PartCounter(options), opened)
    for content in cursor.objects(key, required=True, at_least=1, at_most=options.messages_max):
        reader.add(content)
    return reader.turns()


def read_instruction(cursor: Cursor, key: str, options: ReaderOptions) -> Turn | None:
    """Return the system turn at `key`; None if there is none."""
    content = cursor.object(key)
    if content is None:
        return None
    content.only(_CONTENT_KEYS)
    content.text("role")
    said: list[Part] = []
    for part in content.objects("parts", required=True, at_most=options.parts_max):
        kind = kind_of_part(part)
        if kind and kind != "text":
            part.unsupported(spelled(part, kind), "a system instruction may only hold text")
        text = part.text("text")
        if text is not None:
            said.append(TextPart(text))
    return Turn("system", _content(said)) if said else None


class _Reader:
    """Makes turns of contents, one after the other."""

    def __init__(self, shelf: PartCounter, opened: Opened) -> None:
        self._shelf = shelf
        self._opened = opened
        self._turns: list[Turn] = []
        self._unanswered: list[ToolCall] = []
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._thoughts: list[str] = []
        self._thought: list[str] = []
        self._blocks: TurnBlocks | None = None
        """Those of a turn that has more than texts."""

    def turns(self) -> tuple[Turn, ...]:
        """Return all turns so far."""
        self._close()
        return tuple(self._turns)

    def add(self, content: Cursor) -> None:
        """Take the next content."""
        content.only(_CONTENT_KEYS)
        role = content.word("role", _ROLES) or "user"
        parts = content.array("parts", required=True)
        shelf = self._shelf
        shelf.parts += len(parts or ())
        if shelf.parts > shelf.options.parts_max:
            content.problem("parts", f"a request may have at most {shelf.options.parts_max} parts")
            return
        if role != _MODEL:
            self._close()
            self._hear(content, parts or [])
            return
        for index, value in enumerate(parts or ()):
            if _is_text(value):
                self._texts.append(value["text"])
            elif (part := content.element("parts", index, value)) is not None:
                self._say(part)

    def _hear(self, content: Cursor, parts: list[Any]) -> None:
        """Take a content of the user: texts, media, results."""
        said: list[Part] = []
        for index, value in enumerate(parts):
            if _is_text(value):
                said.append(TextPart(value["text"]))
                continue
            part = content.element("parts", index, value)
            kind = "" if part is None else kind_of_part(part)
            if part is None or not kind:
                continue
            if kind == "functionResponse":
                self._ask(said)
                said = []
                self._answer(part)
            elif kind == "functionCall":
                part.problem(spelled(part, kind), "only a content of role 'model' may call")
            else:
                said += self._shown(part, kind)
        self._ask(said)

    def _shown(self, part: Cursor, kind: str) -> list[Part]:
        """Return a part that is a text or something to look at; none for one that is not shown."""
        part.flag("thought")
        if kind == "text":
            text = part.text("text")
            return [] if text is None else [TextPart(text)]
        if kind in EXECUTED:
            part.ignore(spelled(part, kind))
            return []
        media = read_media(part, kind, self._shelf)
        return [] if media is None else [media]

    def _ask(self, said: list[Part]) -> None:
        if said:
            self._turns.append(Turn("user", _content(said)))

    def _answer(self, part: Cursor) -> None:
        """Take a result: a turn of the tool."""
        result = read_result(part, self._shelf)
        if result is None:
            return
        waiting = self._unanswered
        found = [call for call in waiting if result.call_id and call.call_id == result.call_id]
        found = found or [call for call in waiting if call.name == result.name]
        if found:
            waiting.remove(found[0])
        elif not result.call_id:
            why = f"there is no call of {quoted(result.name)} that this could answer"
            part.problem(spelled(part, "functionResponse"), why)
            return
        answers = found[0].call_id if found else result.call_id
        self._turns.append(Turn("tool", result.content, name=result.name, answers_call=answers))

    # ── The model's own ──────────────────────────────────────────────────────

    def _say(self, part: Cursor) -> None:
        """Take a part of the model's."""
        kind = kind_of_part(part)
        is_thought = part.flag("thought")
        signature = part.text(spelled(part, "thoughtSignature"))
        blocks = self._blocks
        if blocks is None:
            blocks = self._blocks = TurnBlocks(self._texts)
        call: ToolCall | None = None
        if kind == "text":
            text = part.text("text") or ""
            if is_thought:
                blocks.think(text)
                self._thought.append(text)
            else:
                self._texts.append(text)
        elif kind == "functionCall":
            call = read_call(part, f"call_{len(self._turns)}_{len(self._calls)}")
            if call is not None:
                self._calls.append(call)
        elif kind == "functionResponse":
            part.problem(spelled(part, kind), "only a content of role 'user' may answer a call")
        elif kind:
            # No template here shows what a model drew, spoke or ran, and what signs it signs nothing else.
            part.ignore(spelled(part, kind))
        opaque = self._sign(signature, blocks) if signature else ()
        if call is not None:
            blocks.call(call, opaque)
        elif opaque and kind in ("", "text"):
            blocks.sign("reasoning" if is_thought else "text", opaque)

    def _sign(self, signature: str, blocks: TurnBlocks) -> tuple[Opaque, ...]:
        """End a thought: its text if the client has it, else what the signature carries; return the rest of that."""
        carried, state = self._opened(signature), State(())
        if carried is None:
            state = state_in(signature)
            carried = self._opened(state.seal) if state.seal else None
        shown = "".join(self._thought)
        if not shown and carried:
            shown = carried
            blocks.remember(carried)
        if shown:
            self._thoughts.append(shown)
        self._thought = []
        return state.opaque

    def _close(self) -> None:
        """End the model's turn, if there is one. A thought that led to nothing is not shown."""
        text, calls = "".join(self._texts), tuple(self._calls)
        rest = "".join(self._thought)
        thoughts = [*self._thoughts, rest] if rest else self._thoughts
        if text or calls:
            reasoning = _BETWEEN_THOUGHTS.join(thoughts) if thoughts else None
            blocks = () if self._blocks is None else self._blocks.all()
            self._turns.append(
                Turn("assistant", text or None, reasoning=reasoning, calls=calls, blocks=blocks)
            )
        self._unanswered += calls
        self._texts, self._calls, self._thoughts, self._thought = [], [], [], []
        self._blocks = None


def _is_text(value: Any) -> bool:
    """Whether a part is a text and nothing else, as most are."""
    return type(value) is dict and len(value) == 1 and type(value.get("text")) is str


def _content(said: list[Part]) -> str | tuple[Part, ...]:
    """Return one text as a string, as a client of Chat Completions would send it; else the parts."""
    first = said[0]
    return first.text if len(said) == 1 and isinstance(first, TextPart) else tuple(said)
