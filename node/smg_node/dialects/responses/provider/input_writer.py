"""Writer of `input` and `instructions`: the turns of a prompt as items, in their order. Pure.

system turns at the beginning    the instructions; later ones are messages at their place
a thought                        an item, if it has encrypted content of this vendor's; else nowhere
a thought that nothing follows   nowhere: the vendor refuses it
a call, a result                 an item each, a result for every call
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

from smg_node.core.generation.opaque import ENCRYPTED
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    Part,
    Turn,
    TurnBlock,
    blocks_of,
)
from smg_node.dialects.openai.provider.argument_text import object_text
from smg_node.dialects.openai.provider.inline_media import file_name, is_inline
from smg_node.dialects.openai.provider.paired_turns import paired_turns, text_in
from smg_node.dialects.openai.provider.request_checks import not_here
from smg_node.dialects.responses.items.item_state import PHASE, PHASES

_SYSTEMS: Final = ("system", "developer")
_BLANK_LINE: Final = "\n\n"


def input_of(prompt: ChatPrompt, issuer: str) -> dict[str, Any]:
    """Return `input` and `instructions`; INVALID_REQUEST for media that no item carries."""
    turns = prompt.turns
    begun = next((at for at, turn in enumerate(turns) if not _is_plain_system(turn)), len(turns))
    systems = [text for turn in turns[:begun] if (text := text_in(turn.content))]
    items = [item for turn in paired_turns(turns[begun:]) for item in _items(turn, issuer)]
    if not items:
        # A request without input is refused, so the instruction is what the user says.
        items, systems = [_message("user", _BLANK_LINE.join(systems) or " ")], []
    told: dict[str, Any] = {"input": items}
    if systems:
        told["instructions"] = _BLANK_LINE.join(systems)
    return told


def _is_plain_system(turn: Turn) -> bool:
    content = turn.content
    return turn.role in _SYSTEMS and not (
        isinstance(content, tuple) and any(isinstance(part, MediaPart) for part in content)
    )


def _items(turn: Turn, issuer: str) -> Iterator[dict[str, Any]]:
    if turn.role == "assistant":
        yield from _answer(blocks_of(turn), issuer)
    elif turn.role == "tool":
        output = _content(turn.content)
        yield {"type": "function_call_output", "call_id": turn.answers_call, "output": output}
    else:
        content = _content(turn.content)
        if content:
            yield _message(turn.role, content)


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


# ── The assistant's ──────────────────────────────────────────────────────────


def _answer(blocks: Sequence[TurnBlock], issuer: str) -> Iterator[dict[str, Any]]:
    waiting = list[dict[str, Any]]()
    for block in blocks:
        if block.kind == "reasoning":
            waiting += _thought(block, issuer)
            continue
        if block.kind == "text":
            if not block.text:
                continue
            item = _message("assistant", block.text)
            phase = _state(block, issuer, PHASE)
            if phase in PHASES:
                item["phase"] = phase
        else:
            item = {
                "type": "function_call",
                "call_id": block.call_id,
                "name": block.name,
                "arguments": object_text(block.text),
            }
        yield from waiting
        waiting = []
        yield item


def _thought(block: TurnBlock, issuer: str) -> Iterator[dict[str, Any]]:
    for opaque in block.opaque:
        if opaque.issuer == issuer and opaque.kind == ENCRYPTED:
            summary = [{"type": "summary_text", "text": block.text}] if block.text else []
            yield {
                "type": "reasoning",
                "id": opaque.label or _made_id(opaque.data),
                "summary": summary,
                "encrypted_content": opaque.data,
            }


def _made_id(data: str) -> str:
    """Return an id for a thought that came without one: an item of this type must have one."""
    return f"rs_{blake2b(data.encode(), digest_size=24).hexdigest()}"


def _state(block: TurnBlock, issuer: str, kind: str) -> str:
    found = (one.data for one in block.opaque if one.issuer == issuer and one.kind == kind)
    return next(found, "")


# ── Contents ─────────────────────────────────────────────────────────────────


def _content(content: str | tuple[Part, ...] | None) -> str | list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return content or ""
    return list(_parts(content)) or ""


def _parts(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if isinstance(part, MediaPart):
            yield _media(part)
        elif part.text:
            yield {"type": "input_text", "text": part.text}


def _media(part: MediaPart) -> dict[str, Any]:
    source = part.source
    if not source:
        raise not_here(f"this {part.kind} input has nothing it could be sent", part.where)
    if part.kind == "image":
        return {"type": "input_image", "detail": part.detail or "auto", "image_url": source}
    if part.kind == "file":
        if is_inline(source):
            name = part.name or file_name(source)
            return {"type": "input_file", "filename": name, "file_data": source}
        return {"type": "input_file", "file_url": source}
    raise not_here(f"it takes no {part.kind} input", part.where)
