"""Prompt beginning: chain of hashes over a prompt in the order in which vendors cache it, and the client's marks in it. Pure.

    tools, system, messages     as the API orders them; each piece as canonical JSON, without the marks themselves
    h(i) = xxh3(block i, h(i - 1))     blocks of 256 bytes, so equal hashes mean equal beginnings
    e(n) = xxh3(rest, h(last block before n))      the exact end of piece n: where marks stand

A text and a list of one text part are the same to a vendor, and are the same here: clients that move a mark along
rewrite the one as the other. A piece is encoded once, from the fields that were read anyway; nothing is decoded.

Vendors that cache by themselves read any whole blocks: of these the *stops* are remembered, after which a later prompt
is likely to differ. Vendors that cache what is marked read up to a mark of an earlier request, exactly: so these are
looked up by the ends of pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from xxhash import xxh3_64_intdigest

from smg_node.engines.http.vendor_cache import LIFE_MS, LONG_MS

BLOCK_BYTES: Final = 256
BYTES_MAX: Final = 4 * 1024 * 1024
"""So much of a prompt is looked at: a million tokens."""
MARK_WORDS: Final = (b"cache_control", b"cachePoint", b"prompt_cache_breakpoint")
"""A body without any of these has no mark."""
_BODIES: Final = ("content", "parts")
"""Members of a turn that hold its blocks."""
_TURNS: Final = frozenset({"messages", "contents", "input"})
_TEXT: Final = b'{"text":%b,"type":"text"}'
_MASK: Final = (1 << 60) - 1
_LIVES: Final = {"5m": LIFE_MS, "30m": 6 * LIFE_MS, "1h": LONG_MS, "24h": 24 * LONG_MS}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class End(msgspec.Struct, frozen=True, gc=False):
    """The end of one piece: a hash of all up to it, and how many bytes that is."""

    hash: int
    size_bytes: int


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A client's mark: the number of the piece at whose end it stands, and for how long it asks."""

    piece: int
    life_ms: int = LIFE_MS


class PromptBeginning(msgspec.Struct, frozen=True):
    """One prompt: the hash of each whole block, each with all before it. `size_bytes` is all of its canonical text.

    `stops` are ascending numbers of whole blocks, above 0. `marks` are the client's, in order, one for the whole
    prompt last. `life_ms` is how long the client wants it cached where the vendor caches by itself, 0 unless it says
    so; `explicit`: even there only what is marked.
    """

    hashes: Sequence[int]
    ends: Sequence[End]
    size_bytes: int
    stops: tuple[int, ...]
    marks: tuple[Mark, ...] = ()
    life_ms: int = 0
    explicit: bool = False


def beginning_of(
    order: Sequence[str], fields: Mapping[str, Any], *, marked: bool
) -> PromptBeginning:
    """Return the beginning of a request. `order` names the fields of its prompt as the vendor caches them.

    `marked`: there may be marks, as far as the bytes of the body tell (`MARK_WORDS`); without, none is looked for.
    """
    text = _Text()
    head_bytes = 0
    for name in order:
        value = fields.get(name)
        if value is None:
            continue
        if name in _TURNS:
            head_bytes = text.size
        for item in value if isinstance(value, list) else (value,):
            if text.size > BYTES_MAX:
                break
            _put(text, item, marked=marked)
    whole = b"".join(text.pieces)
    hashes = list(_hashes(whole))
    marked_ends = (text.ends[mark.piece] for mark in text.marks)
    stops = [end // BLOCK_BYTES for end in (head_bytes, *marked_ends, text.size)]
    top = fields.get("cache_control") if marked else None
    if isinstance(top, dict) and text.ends:
        text.mark(_life_ms(top))
    life_ms, explicit = _said(fields)
    return PromptBeginning(
        hashes,
        list(_ends(whole, hashes, text.ends)),
        text.size,
        tuple(sorted({min(stop, len(hashes)) for stop in stops if stop > 0})),
        tuple(text.marks),
        life_ms,
        explicit,
    )


class _Text:
    """Canonical text under way: its pieces, where blocks of the prompt end in it, and the marks at such ends."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[int] = []
        self.marks: list[Mark] = []
        self.size = 0

    def put(self, piece: bytes, *, ends: bool = True) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        if ends:
            self.ends.append(self.size)

    def mark(self, life_ms: int) -> None:
        """Mark what was put in last."""
        if not self.ends:
            return
        one = Mark(len(self.ends) - 1, life_ms)
        if self.marks and self.marks[-1].piece == one.piece:
            self.marks.pop()
        self.marks.append(one)


def _put(text: _Text, item: Any, *, marked: bool) -> None:
    """Put in one tool, one block of a system prompt, or one turn."""
    if isinstance(item, str):
        text.put(_TEXT % _encode(item))
        return
    if not isinstance(item, dict):
        text.put(_encode(item))
        return
    body = next((name for name in _BODIES if name in item), None)
    if body is None:
        _put_block(text, item, marked=marked)
        return
    rest = {key: value for key, value in item.items() if key not in (body, "cache_control")}
    text.put(_encode(rest), ends=False)
    said = item[body]
    for block in said if isinstance(said, list) else (said,):
        if isinstance(block, str):
            text.put(_TEXT % _encode(block))
        else:
            _put_block(text, block, marked=marked)
    if marked:
        _note(text, item)


def _put_block(text: _Text, block: Any, *, marked: bool) -> None:
    if not marked or not isinstance(block, dict):
        text.put(_encode(block))
        return
    plain = {key: value for key, value in block.items() if key not in _MARKS}
    if plain:
        inner = plain.get("content")
        if isinstance(inner, list):
            # A result of a call has blocks of its own, which may be marked.
            plain["content"] = [_plain(one) for one in inner]
        text.put(_encode(plain))
        if isinstance(inner, list):
            for one in inner:
                _note(text, one)
    _note(text, block)


_MARKS: Final = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if key not in _MARKS}


def _note(text: _Text, holder: Any) -> None:
    """Take down the mark that an object carries, if it carries one: it stands at the end of what was put in last."""
    if not isinstance(holder, dict):
        return
    for name in sorted(_MARKS):
        said = holder.get(name)
        if isinstance(said, dict):
            text.mark(_life_ms(said))
            return


def _life_ms(mark: Mapping[str, Any]) -> int:
    ttl = mark.get("ttl")
    return _LIVES.get(ttl, LIFE_MS) if isinstance(ttl, str) else LIFE_MS


def _said(fields: Mapping[str, Any]) -> tuple[int, bool]:
    """Return how long a client of OpenAI's APIs wants its prompt cached, 0 where it says nothing of it, and whether
    only what it marks.
    """
    options = fields.get("prompt_cache_options")
    if not isinstance(options, dict):
        said = fields.get("prompt_cache_retention")
        return (_LIVES.get(said, 0) if isinstance(said, str) else 0), False
    said = options.get("ttl")
    life_ms = _LIVES.get(said, 0) if isinstance(said, str) else 0
    return life_ms, options.get("mode") == "explicit"


def _hashes(text: bytes) -> Iterator[int]:
    last = 0
    for at in range(0, len(text) - BLOCK_BYTES + 1, BLOCK_BYTES):
        last = xxh3_64_intdigest(text[at : at + BLOCK_BYTES], last) & _MASK
        yield last


def _ends(text: bytes, hashes: Sequence[int], ends: Sequence[int]) -> Iterator[End]:
    for end in ends:
        blocks = end // BLOCK_BYTES
        seed = (hashes[blocks - 1] if blocks else 0) ^ _MASK
        found = xxh3_64_intdigest(text[blocks * BLOCK_BYTES : end], seed) & _MASK
        yield End(found, end)
