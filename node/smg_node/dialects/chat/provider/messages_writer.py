"""Writer of `messages` for vendors: turns as messages, calls with their results, media where the API has a place. Pure.

opaque state    of Google on calls, of OpenRouter beside the text: where the vendor wants it back
thoughts        as `reasoning_content` where the vendor wants it back, else nowhere
pictures of a result    in a message of the user behind all results: a result can hold text only
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from smg_node.core.generation.opaque import SIGNATURE
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    Part,
    TextPart,
    Turn,
    TurnBlock,
)
from smg_node.dialects.chat.state.thought_details import detail_rows
from smg_node.dialects.openai.provider.argument_text import object_text
from smg_node.dialects.openai.provider.inline_media import file_name, is_inline, sound_in
from smg_node.dialects.openai.provider.paired_turns import paired_turns, text_in
from smg_node.dialects.openai.provider.quirks import (
    REASONING_CONTENT,
    REASONING_DETAILS,
    SYSTEM_ROLE,
    THOUGHT_SIGNATURES,
)
from smg_node.dialects.openai.provider.request_checks import not_here

_GOOGLE: Final = "google"
_SYSTEMS: Final = ("system", "developer")


def vendor_messages(
    prompt: ChatPrompt, issuer: str, quirks: Collection[str]
) -> list[dict[str, Any]]:
    """Return the messages; INVALID_REQUEST for media that no message carries."""
    writer = _Writer(issuer, quirks)
    for turn in paired_turns(prompt.turns):
        writer.add(turn)
    return writer.messages()


class _Writer:
    """Writes messages, turn after turn."""

    def __init__(self, issuer: str, quirks: Collection[str]) -> None:
        self._quirks = quirks
        self._signs = issuer == _GOOGLE or THOUGHT_SIGNATURES in quirks
        self._messages: list[dict[str, Any]] = []
        self._shown: list[dict[str, Any]] = []
        """Media of results, until all results are there."""

    def messages(self) -> list[dict[str, Any]]:
        """Return all messages so far."""
        self._show()
        # A request without messages is refused.
        return self._messages or [{"role": "user", "content": " "}]

    def add(self, turn: Turn) -> None:
        """Take the next turn."""
        if turn.role == "tool":
            self._messages.append(self._result(turn))
            return
        self._show()
        if turn.role == "assistant":
            message = self._assistant(turn)
            if message is None:
                return
        else:
            system = turn.role in _SYSTEMS
            role = "system" if system and SYSTEM_ROLE in self._quirks else turn.role
            message = {"role": role, "content": _content(turn.content, text_only=system)}
        if turn.name:
            message["name"] = turn.name
        self._messages.append(message)

    def _show(self) -> None:
        if self._shown:
            self._messages.append({"role": "user", "content": self._shown})
            self._shown = []

    def _result(self, turn: Turn) -> dict[str, Any]:
        content = turn.content
        if isinstance(content, tuple):
            media = [_part(part) for part in content if isinstance(part, MediaPart)]
            if media:
                self._shown.append(
                    {"type": "text", "text": f"What the result of {turn.answers_call} shows:"}
                )
                self._shown += media
        return {"role": "tool", "tool_call_id": turn.answers_call, "content": text_in(content)}

    def _assistant(self, turn: Turn) -> dict[str, Any] | None:
        blocks = turn.blocks
        calls = [self._call(block) for block in blocks if block.kind == "call"]
        said = [block.text for block in blocks if block.kind == "text"]
        text = "".join(said) if blocks else text_in(turn.content)
        if not text and not calls:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        if REASONING_CONTENT in self._quirks:
            thoughts = [block.text for block in blocks if block.kind == "reasoning"]
            thought = "".join(thoughts) if blocks else turn.reasoning
            if thought:
                message["reasoning_content"] = thought
        if REASONING_DETAILS in self._quirks:
            rows = [row for block in blocks for row in detail_rows(block.opaque)]
            if rows:
                message["reasoning_details"] = rows
        return message

    def _call(self, block: TurnBlock) -> dict[str, Any]:
        function = {"name": block.name, "arguments": object_text(block.text)}
        call: dict[str, Any] = {"id": block.call_id, "type": "function", "function": function}
        if self._signs:
            proof = next(_signatures(block), None)
            if proof is not None:
                call["extra_content"] = {_GOOGLE: {"thought_signature": proof}}
        return call


def _signatures(block: TurnBlock) -> Iterator[str]:
    return (one.data for one in block.opaque if one.issuer == _GOOGLE and one.kind == SIGNATURE)


def _content(
    content: str | tuple[Part, ...] | None, *, text_only: bool
) -> str | list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return content or ""
    return list(_parts(content, text_only=text_only)) or ""


def _parts(parts: Iterable[Part], *, text_only: bool) -> Iterator[dict[str, Any]]:
    for part in parts:
        if isinstance(part, TextPart):
            if part.text:
                yield {"type": "text", "text": part.text}
        elif text_only:
            raise not_here("only a user may show something", part.where)
        else:
            yield _part(part)


def _part(part: MediaPart) -> dict[str, Any]:
    if not part.source:
        raise not_here(f"this {part.kind} input has nothing it could be sent", part.where)
    match part.kind:
        case "image":
            address = {"url": part.source}
            if part.detail not in ("", "auto"):
                address["detail"] = part.detail
            return {"type": "image_url", "image_url": address}
        case "audio":
            sound = sound_in(part)
            return {
                "type": "input_audio",
                "input_audio": {"data": sound.data, "format": sound.form},
            }
        case "file":
            if not is_inline(part.source):
                raise not_here("it takes files only as data", part.where)
            told = {"file_data": part.source, "filename": part.name or file_name(part.source)}
            return {"type": "file", "file": told}
        case "video":
            raise not_here("it takes no videos", part.where)
