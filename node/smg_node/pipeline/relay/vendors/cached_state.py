"""Cached state: what a cache keeps of an answer's opaque state, and its way back into turns that came without it. Pure.

A vendor wants state back that many clients drop, because it stands in fields that they do not know. So it is kept beside
the answer, under a key that the client's own words give again:

    an answer with calls     its first call: the id and the arguments
    an answer without        its text, and what was said right before it

Texts and calls themselves are not kept: the client has them. Thoughts are, because they go back with their state or not
at all. An id of few characters may be one of a vendor that counts, `call_0` in every answer; then what was said before
counts as well. What does not fit a turn, because the client changed it, is left out.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from smg_node.core.generation.events import BlockEnd, BlockKind
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
)

ROW_MAX_BYTES: Final = 65_536
"""State of an answer that is larger is not kept: 42 KB is the largest that was seen of one block."""
TURNS_MAX: Final = 256
"""So many turns are looked up, the newest: vendors want the state of the current turn, at most."""
COUNTED_MAX: Final = 15
"""An id of so few characters does not tell an answer from all others."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder().decode


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block: its kind, its length or that of a call's place, 0; its state; the text of a thought."""

    kind: BlockKind
    length: int
    opaque: tuple[tuple[str, str, str, str], ...] = ()
    thought: str = ""


_rows: Final = msgspec.json.Decoder(tuple[_Row, ...]).decode


# ── Keys ─────────────────────────────────────────────────────────────────────


def call_key(call_id: str, arguments: str, before: str) -> str:
    """Return the key of an answer whose first call is this one; `before` is what was said right before the answer."""
    counted = before if len(call_id) <= COUNTED_MAX else ""
    return _digest("call", call_id, _canonical(arguments), counted)


def text_key(text: str, before: str) -> str:
    """Return the key of an answer without calls."""
    return _digest("text", text.strip(), before)


def turn_text(turn: Turn) -> str:
    """Return the text of a turn, and which call it answers."""
    return f"{turn.answers_call or ''}\n{text_in(turn)}"


def text_in(turn: Turn) -> str:
    """Return the text of a turn."""
    content = turn.content
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart))


def _canonical(arguments: str) -> bytes:
    """Return arguments as they are the same however they are written: a client may have parsed them meanwhile."""
    try:
        return _encode(_plain(_decode(arguments)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return arguments.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """Return a value with whole numbers as such: clients in JavaScript have no others."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def _digest(*parts: str | bytes) -> str:
    digest = blake2b(digest_size=20)
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "replace")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


# ── An answer ────────────────────────────────────────────────────────────────


def cached_row(
    blocks: Sequence[BlockEnd], ids: Sequence[str], before: str
) -> tuple[str, bytes] | None:
    """Return the key and the row of an answer; None if it has no state, or too much of it.

    `ids` are those of its calls as its client sees them.
    """
    if not any(block.opaque for block in blocks):
        return None
    calls = [block for block in blocks if block.kind == "call"]
    if calls:
        key = call_key(ids[0], calls[0].text, before) if ids[0] else ""
    else:
        text = "".join(block.text for block in blocks if block.kind in ("text", "refusal"))
        key = text_key(text, before) if text.strip() else ""
    try:
        row = _encode([_row(block) for block in blocks])
    except UnicodeEncodeError:
        # Half a surrogate pair comes from no vendor.
        return None
    return (key, row) if key and len(row) <= ROW_MAX_BYTES else None


def _row(block: BlockEnd) -> _Row:
    opaque = tuple((one.issuer, one.kind, one.data, one.label) for one in block.opaque)
    if block.kind == "reasoning":
        return _Row(block.kind, 0, opaque, block.text)
    return _Row(block.kind, 0 if block.kind == "call" else len(block.text), opaque)


# ── A request ────────────────────────────────────────────────────────────────


def lacking(request: GenerateRequest) -> dict[int, str]:
    """Return which turns have no state, by their places: the keys under which it may be kept."""
    turns = _turns(request)
    found: dict[int, str] = {}
    for at in range(len(turns) - 1, 0, -1):
        turn = turns[at]
        if turn.role != "assistant" or any(block.opaque for block in turn.blocks):
            continue
        before, text = turn_text(turns[at - 1]), text_in(turn)
        if turn.calls:
            found[at] = call_key(turn.calls[0].call_id, turn.calls[0].arguments, before)
        elif text.strip():
            found[at] = text_key(text, before)
        if len(found) == TURNS_MAX:
            break
    return found


def before_answer(request: GenerateRequest) -> str:
    """Return what is said right before the answer to a request."""
    turns = _turns(request)
    return turn_text(turns[-1]) if turns else ""


def with_state(
    request: GenerateRequest, keys: Mapping[int, str], rows: Mapping[str, bytes]
) -> GenerateRequest:
    """Return a request with the state that was found, on the turns that it fits."""
    turns = list(_turns(request))
    for at, key in keys.items():
        row = rows.get(key)
        blocks = None if row is None else _blocks(turns[at], row)
        if blocks is not None:
            turns[at] = msgspec.structs.replace(turns[at], blocks=blocks)
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt), "only turns have keys"
    told = msgspec.structs.replace(prompt, turns=tuple(turns))
    return msgspec.structs.replace(request, prompts=(told,))


def _turns(request: GenerateRequest) -> tuple[Turn, ...]:
    prompt = request.prompts[0] if len(request.prompts) == 1 else None
    return prompt.turns if isinstance(prompt, ChatPrompt) else ()


def _blocks(turn: Turn, raw: bytes) -> tuple[TurnBlock, ...] | None:
    """Return the blocks of a turn with the state of a row; None if they do not fit each other."""
    try:
        rows = _rows(raw)
    except msgspec.MsgspecError:
        return None
    calls = list(turn.calls)
    if sum(row.kind == "call" for row in rows) != len(calls):
        return None
    texts = _texts(text_in(turn), [row.length for row in rows if row.kind in ("text", "refusal")])
    blocks = [_block(row, calls, texts) for row in rows]
    return tuple(block for block in blocks if block is not None)


def _texts(text: str, lengths: list[int]) -> list[tuple[str, bool]]:
    """Return the texts of blocks, and whether each is as it was: changed ones are told as one, in the first's place."""
    if sum(lengths) != len(text):
        return [(text, False), *[("", False)] * len(lengths)]
    cut, at = list[tuple[str, bool]](), 0
    for length in lengths:
        cut.append((text[at : at + length], True))
        at += length
    return cut


def _block(row: _Row, calls: list[ToolCall], texts: list[tuple[str, bool]]) -> TurnBlock | None:
    opaque = tuple(Opaque(*one) for one in row.opaque)
    if row.kind == "call":
        call = calls.pop(0)
        return TurnBlock("call", call.arguments, call.name, call.call_id, opaque)
    if row.kind == "reasoning":
        return TurnBlock("reasoning", row.thought, opaque=opaque)
    text, same = texts.pop(0)
    kept = opaque if same else ()
    return TurnBlock("text", text, opaque=kept) if text or kept else None
