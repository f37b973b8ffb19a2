"""Loaded tokenizer: an encoder, a speller and the vocabulary facts of the files, put together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from smg_node.tokens.encoders import Encoder
from smg_node.tokens.tokenizer import Detokenizer


class Speller(Protocol):
    """Turns ids into text."""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; empty if unknown."""
        ...

    def token_text(self, token_id: int) -> str:
        """Return one token as a reader would see it."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids` as the reference decoder prints it."""
        ...

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> Detokenizer:
        """Return a new machine for one choice."""
        ...


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Result of loading a tokenizer, for logs. A `why` is "" where the first choice was taken."""

    encoder: str
    why_encoder: str
    speller: str
    """`table` or `reference`."""
    why_speller: str


@dataclass(frozen=True, slots=True)
class Borders:
    """Places where a text may be cut so that its pieces encode to the ids of the whole.

    `tokens` are all the added tokens that cut; empty where cutting is not safe, and `why_not` says
    what stands against it.
    """

    tokens: tuple[str, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Vocabulary facts from the files: roles, special ids, ends of text. `size` is one more than
    the largest id.
    """

    size: int
    special_ids: frozenset[int]
    special_tokens: Mapping[str, str]
    eos_ids: frozenset[int]
    borders: Borders
    added_tokens: tuple[str, ...] = ()
    """The texts of all tokens beside the trained ones, special or not."""


class LoadedTokenizer:
    """A `Tokenizer`, put together from parts that are already checked against each other.

    `faster` makes an encoder of the same ids that is quicker, in a second of any thread, or says why there is none; it
    is None where there is nothing to wait for.
    """

    def __init__(
        self,
        *,
        digest: str,
        vocabulary: Vocabulary,
        encoder: Encoder,
        speller: Speller,
        report: LoadReport,
    ) -> None:
        self.digest = digest
        self.vocabulary = vocabulary.size
        self.special_ids = vocabulary.special_ids
        self.special_tokens = dict(vocabulary.special_tokens)
        self.bos = self.special_tokens.get("bos_token")
        self.eos = self.special_tokens.get("eos_token")
        self.eos_ids = vocabulary.eos_ids
        self.encoder = encoder.name
        self.borders = vocabulary.borders
        self.added_tokens = vocabulary.added_tokens
        self.report = report
        self.source = encoder
        # The parts' own methods: each already promises what a tokenizer's must.
        self.encode = encoder.encode
        self.decode = speller.decode
        self.token_bytes = speller.token_bytes
        self.token_text = speller.token_text
        self.detokenizer = speller.detokenizer
        self.faster: Callable[[], tuple[Encoder | None, str]] | None = None

    def take(self, encoder: Encoder | None, why_encoder: str) -> None:
        """Encode with `encoder` from now on, made by `faster`; without one go on as before, for
        this reason. In any thread.
        """
        if encoder is not None:
            self.encoder, self.source, self.encode = encoder.name, encoder, encoder.encode
        self.report = replace(self.report, encoder=self.encoder, why_encoder=why_encoder)
        self.faster = None
