"""Script of the engines during a benchmark: the fixed text and token pieces that every answer is
checked against.
"""

from typing import Final, Protocol

import msgspec

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.load.corpus import Corpus, prose
from smg_chaos.engine.scripts.bundle import Bundle

LONG_TOKENS: Final = 8000
_LONG_PROMPTS: Final = 16
_LONG_BYTES: Final = 128 * 1024


class Spoken(Protocol):
    """What is generated, however long it is asked to be."""

    def text(self, tokens: int) -> str:
        """Return the text of the first `tokens` tokens."""
        ...


class VendorScript:
    """Plain prose in the tokens of a vendor's stand-in: words, with the space before them."""

    def __init__(self, *, tokens_max: int) -> None:
        self.prose = prose(tokens_max + 64)
        self._words = self.prose.split(" ")
        assert len(self._words) > tokens_max, "a word is a token"

    def text(self, tokens: int) -> str:
        """Return the text of the first `tokens` tokens."""
        assert 0 < tokens < len(self._words), "the script is long enough"
        return " ".join(self._words[:tokens])


class Script:
    """Plain prose: one token a word or more, and a text that is whole after each of them."""

    def __init__(self, bundle: Bundle, *, tokens_max: int) -> None:
        self._bundle = bundle
        self.prose = prose(tokens_max + 64)
        self._ids = bundle.encode(self.prose)
        if len(self._ids) <= tokens_max:
            raise BenchError(
                "the tokenizer makes one token of several words; that is not understood"
            )

    def text(self, tokens: int) -> str:
        """Return the text of the first `tokens` tokens."""
        assert 0 < tokens < len(self._ids), "the script is long enough"
        return self._bundle.decode(self._ids[:tokens])

    def pieces(self) -> tuple[str, ...]:
        """Return the text of each token; BenchError if they are not the whole's parts."""
        pieces = tuple(self._bundle.decode([token]) for token in self._ids)
        if "".join(pieces) != self._bundle.decode(self._ids):
            raise BenchError("this tokenizer's tokens have no text of their own, as litellm needs")
        return pieces


def long_sizes(bundle: Bundle, corpus: Corpus) -> tuple[int, ...]:
    """Return how many bytes of each of the first documents make 8,000 tokens."""
    sizes = []
    for number in range(_LONG_PROMPTS):
        escaped = corpus.document(number, _LONG_BYTES)
        text = msgspec.json.decode(b'"%b"' % escaped, type=str)
        low, high = 0, len(text)
        per_token = max(1, len(text[:8000]) / max(1, len(bundle.encode(text[:8000]))))
        guess = min(high, int(LONG_TOKENS * per_token))
        # Tokens per character vary inside a document: a few corrections come within one per cent.
        for _ in range(6):
            tokens = len(bundle.encode(text[:guess]))
            if abs(tokens - LONG_TOKENS) < LONG_TOKENS // 100:
                break
            low, high = (guess, high) if tokens < LONG_TOKENS else (low, guess)
            guess = min(high, max(low, int(guess * LONG_TOKENS / max(1, tokens))))
        sizes.append(len(msgspec.json.encode(text[:guess])) - 2)
    return tuple(sizes)
