"""Detokenizer: token ids to text, one id at a time, for one choice, without half characters. Pure.

Two machines. `TableDetokenizer` looks each id up: most tokens are whole characters on their own and
cost one list access; bytes that are not are held until the character is whole or cannot become one.
`WindowDetokenizer` asks the reference decoder about the last few ids again and again, and gives out
what became longer; it is for vocabularies whose tokens mean something only beside their neighbours.

Both print what the reference decoder prints for the whole sequence, with one deliberate exception. A
byte-fallback decoder judges a whole run of byte tokens at once, and one broken byte at its end turns
every character of the run into U+FFFD. A stream cannot take characters back, and a reader wants
them: here complete characters stay, and each byte that never became one is one U+FFFD.
"""

from codecs import utf_8_decode
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from smg_node.tokens.tokenizer import Detokenizer

REPLACEMENT: Final = "\ufffd"


class Utf8(Protocol):
    """Bytes to text; with `final` no more bytes come."""

    def __call__(self, held: bytes, *, final: bool) -> tuple[str, int]:
        """Return the text that is certain, and how many bytes went into it."""
        ...


def lossy_utf8(held: bytes, *, final: bool) -> tuple[str, int]:
    """Decode as byte-level decoders do: one U+FFFD for each longest broken start of a character."""
    return utf_8_decode(held, "replace", final)


def fallback_utf8(held: bytes, *, final: bool) -> tuple[str, int]:
    """Decode as byte-fallback decoders do: one U+FFFD for each byte of no character."""
    parts: list[str] = []
    start = 0
    while True:
        try:
            parts.append(held[start:].decode())
            return "".join(parts), len(held)
        except UnicodeDecodeError as error:
            parts.append(held[start : start + error.start].decode())
            if not final and error.reason == "unexpected end of data":
                return "".join(parts), start + error.start
            parts.append(REPLACEMENT * (error.end - error.start))
            start += error.end


class TableDetokenizer:
    """Prints by table. `texts[id]` is None where the id is not whole characters on its own."""

    __slots__ = ("_bytes_of", "_decode", "_held", "_texts")

    def __init__(
        self, texts: Sequence[str | None], bytes_of: Callable[[int], bytes], decode: Utf8
    ) -> None:
        self._texts = texts
        self._bytes_of = bytes_of
        self._decode = decode
        self._held = b""

    @property
    def alone(self) -> Sequence[str | None] | None:
        """See `Detokenizer`."""
        return None if self._held else self._texts

    def feed(self, token_id: int) -> str:
        """Take the next id; return the text that is certain now."""
        if not self._held:
            try:
                text = self._texts[token_id]
            except IndexError:
                return ""
            if text is not None:
                return text
        held = self._held + self._bytes_of(token_id)
        text, used = self._decode(held, final=False)
        self._held = held[used:]
        return text

    def feed_all(self, ids: Sequence[int]) -> list[str]:
        """Take several ids; return for each the text that is certain with it, as `feed` would."""
        if not self._held:
            try:
                # Of anything, as it is only looked at as a whole whether each of them is a text.
                texts: list[Any] = list(map(self._texts.__getitem__, ids))
            except IndexError:
                texts = [None]
            if None not in texts:
                return texts
        return [self.feed(token_id) for token_id in ids]

    def finish(self) -> str:
        """Return what was still held, as U+FFFD."""
        if not self._held:
            return ""
        held, self._held = self._held, b""
        return self._decode(held, final=True)[0]


class WithoutLeadingSpaces:
    """Drops up to `spaces` spaces at the very start, then passes everything through."""

    __slots__ = ("_inner", "_left")

    def __init__(self, inner: Detokenizer, spaces: int) -> None:
        self._inner = inner
        self._left = spaces

    @property
    def alone(self) -> Sequence[str | None] | None:
        """See `Detokenizer`."""
        return None if self._left else self._inner.alone

    def feed(self, token_id: int) -> str:
        """Take the next id; return the text that is certain now."""
        text = self._inner.feed(token_id)
        return self._strip(text) if self._left and text else text

    def finish(self) -> str:
        """Return what was still held."""
        return self._strip(self._inner.finish())

    def _strip(self, text: str) -> str:
        if not self._left:
            return text
        rest = text.lstrip(" ")
        dropped = min(self._left, len(text) - len(rest))
        self._left = self._left - dropped if not rest else 0
        return text[dropped:]


class Vocabulary(Protocol):
    """Questions of `WindowDetokenizer` to a reference decoder. Hidden and unknown ids print
    nothing.
    """

    def prints(self, token_id: int) -> bool:
        """Whether the id is known and not hidden."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; all of them print."""
        ...

    def added_text(self, token_id: int) -> str | None:
        """Return the text of an added token, None for one of the model's own."""
        ...


class WindowDetokenizer:
    """Prints by asking the reference decoder for a window of recent ids.

    The window is the ids whose text went out last (the context) and those that wait. Text leaves when
    the window's text grew and does not end in U+FFFD, which may be a character in the making. No
    character takes more than four tokens, so of more than three that wait the first leaves anyway.
    """

    __slots__ = ("_after_added", "_context", "_printed", "_raw_added", "_vocabulary", "_waiting")

    def __init__(
        self, vocabulary: Vocabulary, prompt_tail: Sequence[int], *, spaces_between_added: bool
    ) -> None:
        self._vocabulary = vocabulary
        self._context = [token_id for token_id in prompt_tail if vocabulary.prints(token_id)]
        self._printed = vocabulary.text(self._context)
        self._waiting: list[int] = []
        self._raw_added = not spaces_between_added
        self._after_added = False

    @property
    def alone(self) -> Sequence[str | None] | None:
        """See `Detokenizer`: here no id is."""
        return None

    def feed(self, token_id: int) -> str:
        """Take the next id; return the text that is certain now."""
        if not self._vocabulary.prints(token_id):
            return ""
        if self._raw_added:
            text = self._vocabulary.added_text(token_id)
            follows, self._after_added = self._after_added, text is not None
            if text is not None and follows and not self._waiting:
                self._move_on([token_id])
                return text
        self._waiting.append(token_id)
        text = self._vocabulary.text(self._context + self._waiting)
        if len(text) > len(self._printed) and not text.endswith(REPLACEMENT):
            return self._take(text, self._waiting)
        return self._overflow()

    def finish(self) -> str:
        """Return what was still held."""
        if not self._waiting:
            return ""
        return self._take(self._vocabulary.text(self._context + self._waiting), self._waiting)

    def _overflow(self) -> str:
        if len(self._waiting) <= WAITING_MAX:
            return ""
        first = self._waiting[:1]
        left = self._waiting[1:]
        text = self._take(self._vocabulary.text(self._context + first), first)
        self._waiting = left
        return text

    def _take(self, text: str, ids: list[int]) -> str:
        """Return what `text`, of context and `ids`, has more than was printed; move the window on."""
        if text.startswith(self._printed):
            fresh = text[len(self._printed) :]
        else:  # A broken byte reached back into what has been printed: only the new ids count.
            fresh = self._vocabulary.text(ids)
        if fresh:
            self._move_on(ids)
        else:  # Nothing printed yet: what came before still decides how these ids look.
            self._context = (self._context + ids)[-CONTEXT_MAX:]
            self._printed = self._vocabulary.text(self._context)
            self._waiting = []
        return fresh

    def _move_on(self, ids: list[int]) -> None:
        self._context = ids
        self._printed = self._vocabulary.text(ids)
        self._waiting = []


WAITING_MAX: Final = 3
"""Tokens of one unfinished character: four bytes, and the fourth finishes it."""
CONTEXT_MAX: Final = 16
"""More than any decoder looks back; only tokens that print nothing make the context grow at all."""
