"""Token table: the bytes of every id, for vocabularies whose tokens mean the same wherever they
stand.

Two families qualify, and together they are nearly every model served today:

- *byte-level* (GPT-2 and after): a token is a run of bytes, each spelled as one printable character;
  a token with any other character in it is its own UTF-8 text, as added tokens are;
- *byte-fallback* (SentencePiece through a Replace, ByteFallback, Fuse and Strip decoder): a token is
  text with U+2581 for a space, or one byte spelled `<0xNN>`; one space may be dropped at the start.

A table is only a claim about the reference decoder, so `table_of` proves it at load: every id alone,
and long mixed sequences, must print the same through both. One difference, and there is no table.

150,000 texts as objects take 12 MB, and an answer uses a few hundred of them. So the spellings lie in one piece, 1.6 MB with
where they end, and a token becomes a text when it is first printed: 1 us more, once.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, Protocol

from smg_node.tokens.decoding.detokenizer import (
    TableDetokenizer,
    Utf8,
    WithoutLeadingSpaces,
    fallback_utf8,
    lossy_utf8,
)
from smg_node.tokens.tokenizer import Detokenizer

_SPACE: Final = "\u2581"


class ReferenceDecoder(Protocol):
    """The part of `tokenizers.Tokenizer` that a table must equal."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`."""
        ...


class TokenTable:
    """Bytes of every id. `spellings[id]` is b"" for an id that does not exist.

    `byte_ids` are the ids that a byte-fallback decoder joins into runs; `leading_spaces` is how many
    spaces the decoder drops at the start of a text.
    """

    def __init__(
        self,
        spellings: Iterable[bytes],
        *,
        special_ids: frozenset[int],
        byte_ids: frozenset[int] = frozenset(),
        leading_spaces: int = 0,
    ) -> None:
        self.special_ids = special_ids
        self._byte_ids = byte_ids
        self._leading_spaces = leading_spaces
        self._decode: Utf8 = fallback_utf8 if byte_ids else lossy_utf8
        content, lengths = bytearray(), array("I")
        for spelling in spellings:
            content += spelling
            lengths.append(len(spelling))
        self._content = bytes(content)
        self._ends = array("I", accumulate(lengths, initial=0))
        """Where each begins, and where the last one ends."""
        self.forget()

    def forget(self) -> None:
        """Let go of all texts that were made of spellings so far; machines that there are by now go on with theirs."""
        size = len(self._ends) - 1
        self._shown: list[str | None] = [None] * size
        """Texts of tokens that are whole characters and were printed before."""
        self._broken: dict[int, bytes] = {}
        """Bytes of those that are not, and were."""
        # A second list instead of a test per token: skipping costs nothing while it streams.
        self._visible = list(self._shown)
        for token_id in sorted(self.special_ids):
            if token_id < size:
                self._visible[token_id] = ""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the exact bytes of one token; empty if unknown."""
        if not 0 <= token_id < len(self._shown):
            return b""
        text = self._shown[token_id]
        if text is not None:
            return text.encode()
        return self._broken.get(token_id) or self._first_bytes(token_id)

    def _first_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token that was not asked for before, and keep what it prints."""
        spelling = self._content[self._ends[token_id] : self._ends[token_id + 1]]
        try:
            text = spelling.decode()
        except UnicodeDecodeError:
            self._broken[token_id] = spelling
        else:
            self._shown[token_id] = text
            if token_id not in self.special_ids:
                self._visible[token_id] = text
        return spelling

    def token_text(self, token_id: int) -> str:
        """Return one token as a reader would see it."""
        return self._decode(self.token_bytes(token_id), final=True)[0]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`, exactly as the reference decoder would."""
        spell = self._visible_bytes if skip_special_tokens else self.token_bytes
        if not self._byte_ids:
            return b"".join(map(spell, ids)).decode("utf-8", "replace")
        text = "".join(self._runs(ids, spell))
        rest = text.lstrip(" ")
        return text[min(self._leading_spaces, len(text) - len(rest)) :]

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> Detokenizer:
        """Return a new machine; these decoders put no spaces between tokens that one could leave out."""
        inner = TableDetokenizer(
            self._visible if skip_special_tokens else self._shown,
            self._visible_bytes if skip_special_tokens else self.token_bytes,
            self._decode,
        )
        if not self._leading_spaces:
            return inner
        machine = WithoutLeadingSpaces(inner, self._leading_spaces)
        for token_id in prompt_tail:
            machine.feed(token_id)
        machine.finish()  # The rest of a character that the prompt cut is no text of the answer.
        return machine

    def _visible_bytes(self, token_id: int) -> bytes:
        return b"" if token_id in self.special_ids else self.token_bytes(token_id)

    def _runs(self, ids: Sequence[int], spell: Callable[[int], bytes]) -> Iterator[str]:
        """Yield the text of `ids`; a run of byte tokens is text as a whole or U+FFFD for each byte."""
        run = b""
        for token_id in ids:
            spelled = spell(token_id)
            if token_id in self._byte_ids:
                run += spelled
            elif spelled:
                yield _run_text(run)
                run = b""
                yield spelled.decode("utf-8", "replace")
        yield _run_text(run)


def _run_text(run: bytes) -> str:
    try:
        return run.decode()
    except UnicodeDecodeError:
        return "\ufffd" * len(run)


def table_of(
    pieces: Sequence[str | None],
    *,
    decoder: object,
    special_ids: frozenset[int],
    reference: ReferenceDecoder,
) -> tuple[TokenTable | None, str]:
    """Return a proven table and "", or None and why there is none; the arguments as `claimed_table` has them."""
    table, why_not = claimed_table(pieces, decoder=decoder, special_ids=special_ids)
    if table is None:
        return None, why_not
    difference = _difference(table, reference, pieces)
    table.forget()
    return (table, "") if difference is None else (None, difference)


def claimed_table(
    pieces: Sequence[str | None], *, decoder: object, special_ids: frozenset[int]
) -> tuple[TokenTable | None, str]:
    """Return the table that these files should have and "", or None and why they cannot have one.

    `pieces[id]` is the vocabulary's own spelling, None for an id that does not exist; `decoder` is
    that section of tokenizer.json. Only to be used where it is proven for these very files.
    """
    steps = _steps(decoder)
    if [step.get("type") for step in steps] == ["ByteLevel"]:
        return _byte_level(pieces, special_ids), ""
    spaces = _leading_spaces(steps)
    if spaces is None:
        kinds = ", ".join(str(step.get("type")) for step in steps) or "none"
        return None, f"its decoder ({kinds}) looks beyond single tokens"
    return _byte_fallback(pieces, special_ids, spaces), ""


def _byte_level(pieces: Sequence[str | None], special_ids: frozenset[int]) -> TokenTable:
    byte_of = {character: byte for byte, character in enumerate(byte_alphabet())}

    def spell(piece: str) -> bytes:
        try:
            return bytes([byte_of[character] for character in piece])
        except KeyError:
            return piece.encode()

    spellings = (b"" if piece is None else spell(piece) for piece in pieces)
    return TokenTable(spellings, special_ids=special_ids)


def byte_alphabet() -> str:
    """Return the 256 characters that stand for the bytes in GPT-2's vocabulary, in order of bytes.

    Printable Latin-1 characters stand for themselves; the rest are moved, in order, to U+0100 and up.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = 0
    characters = []
    for byte in range(256):
        if byte in printable:
            characters.append(chr(byte))
        else:
            characters.append(chr(0x100 + moved))
            moved += 1
    return "".join(characters)


def _byte_fallback(
    pieces: Sequence[str | None], special_ids: frozenset[int], leading_spaces: int
) -> TokenTable:
    bytes_of = {
        token_id: byte
        for token_id, piece in enumerate(pieces)
        if piece is not None and (byte := _fallback_byte(piece)) is not None
    }

    def spell(token_id: int, piece: str | None) -> bytes:
        byte = bytes_of.get(token_id)
        return (piece or "").replace(_SPACE, " ").encode() if byte is None else bytes([byte])

    return TokenTable(
        (spell(token_id, piece) for token_id, piece in enumerate(pieces)),
        special_ids=special_ids,
        byte_ids=frozenset(bytes_of),
        leading_spaces=leading_spaces,
    )


def _fallback_byte(piece: str) -> int | None:
    if len(piece) != 6 or not piece.startswith("<0x") or not piece.endswith(">"):
        return None
    try:
        return int(piece[3:5], 16)
    except ValueError:
        return None


def _steps(decoder: object) -> list[dict[str, Any]]:
    """Return the steps of a decoder, sequences flattened; [] for one that is malformed."""
    if not isinstance(decoder, dict):
        return []
    if decoder.get("type") != "Sequence":
        return [decoder]
    inner = decoder.get("decoders")
    if not isinstance(inner, list) or not all(isinstance(step, dict) for step in inner):
        return []
    return inner


def _leading_spaces(steps: list[dict[str, Any]]) -> int | None:
    """Return how many leading spaces a byte-fallback decoder drops; None if it is not one."""
    kinds = [step.get("type") for step in steps]
    if kinds[:3] != ["Replace", "ByteFallback", "Fuse"] or kinds[3:] not in ([], ["Strip"]):
        return None
    if steps[0].get("pattern") != {"String": _SPACE} or steps[0].get("content") != " ":
        return None
    if len(steps) == 3:
        return 0
    strip = steps[3]
    start = strip.get("start")
    if strip.get("content") != " " or strip.get("stop") != 0 or not isinstance(start, int):
        return None
    return start


def _difference(
    table: TokenTable, reference: ReferenceDecoder, pieces: Sequence[str | None]
) -> str | None:
    """Return where table and reference differ, None if nowhere."""
    known = [token_id for token_id, piece in enumerate(pieces) if piece is not None]
    decode = reference.decode
    for token_id in known:
        alone = decode([token_id], skip_special_tokens=False)
        if alone != table.decode([token_id], skip_special_tokens=False):
            return f"token {token_id} prints differently through its decoder"
    for ids in _mixtures(known, table.special_ids):
        for skip in (False, True):
            printed = decode(ids, skip_special_tokens=skip)
            if printed != table.decode(ids, skip_special_tokens=skip):
                return f"a sequence that begins with {ids[:4]} prints differently"
    return None


def _mixtures(known: list[int], special_ids: frozenset[int]) -> Iterator[list[int]]:
    """Yield sequences that put every id beside ids from elsewhere, special ones now and then."""
    specials = sorted(special_ids & set(known)) or known[:1]
    count = len(known)
    step = 2_654_435_761 % count if count else 0  # Fibonacci hashing: neighbours end up far apart.
    at = 0
    for start in range(0, min(count, MIXED_IDS), MIXTURE):
        ids = []
        for place in range(start, min(start + MIXTURE, count)):
            at = (at + step) % count
            ids += [known[at], known[place]]
        ids.insert(len(ids) // 2, specials[start % len(specials)])
        yield ids


MIXTURE: Final = 24
MIXED_IDS: Final = 24_000
"""Ids tried beside others; a decoder that looks at neighbours does so for common tokens."""
