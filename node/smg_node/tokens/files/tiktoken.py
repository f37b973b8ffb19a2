"""Tiktoken tokenizer: loads a *.tiktoken file: ranks of byte strings, one per line.

The optional package `tiktoken` does the merging. Ids to text needs no proof here: the file itself says
what bytes an id is.
"""

import base64
import binascii
import re
import unicodedata
from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from smg_node.core.generation.request import TokenIds
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.decoding.token_table import TokenTable
from smg_node.tokens.files.side_files import SideFiles, read_side_files
from smg_node.tokens.files.tiktoken_families import (
    FAMILIES,
    KIMI_RESERVED,
    Family,
    family_of,
    reserved_kimi,
)
from smg_node.tokens.files.tokenizer_json import VOCABULARY_MAX
from smg_node.tokens.library_errors import (
    encode_failed,
    is_foreign,
    reading,
    unusable,
    whole_unicode,
)
from smg_node.tokens.loaded_tokenizer import Borders, LoadedTokenizer, LoadReport, Vocabulary

if TYPE_CHECKING:
    import tiktoken

PIECE_MAX: Final = 400_000
"""Characters handed over at once where a text has to be cut; as the authors of Kimi do."""
RUN_MAX: Final = 25_000
"""Run of characters without, or of only, white space that every split pattern can still walk back."""


def is_ranks_file(name: str) -> bool:
    """Whether a file of a bundle holds ranks."""
    return name.endswith(".tiktoken") or name.rpartition("/")[2] == "tiktoken.model"


def load_tiktoken(bundle: TokenizerBundle, name: str) -> LoadedTokenizer:
    """Return the tokenizer of the ranks file `name`.

    UPSTREAM_FAILED `tiktoken_missing` without the extra, `tokenizer_invalid` for a file that is none
    or that belongs to no known family.
    """
    side = read_side_files(bundle)
    ranks = read_ranks(bundle.files[name], f"{name} of {bundle.origin}")
    family = family_of(side, name, len(ranks))
    if family is None:
        raise unusable(
            f"{name} of {bundle.origin} has {len(ranks)} ranks and is of no known family"
            f" ({', '.join(FAMILIES)}); name one in the file's name or by tokenizer_class"
        )
    specials, special_ids = _specials(side, family, ranks)
    roles = {**family.roles, **side.roles()}
    size = 1 + max(max(ranks.values()), max(specials.values(), default=0))
    if size > VOCABULARY_MAX:
        raise unusable(f"{name} of {bundle.origin}: its largest id is {size - 1}")
    bos = specials.get(roles.get("bos_token", "")) if _begins(side, family) else None
    encoder = TiktokenEncoder(_encoding(family, ranks, specials), family, bos)
    table = TokenTable(_spellings(ranks, specials, size), special_ids=special_ids)
    return LoadedTokenizer(
        digest=bundle.digest,
        vocabulary=Vocabulary(
            size=size,
            special_ids=special_ids,
            special_tokens=roles,
            eos_ids=side.eos_ids(specials.get) | _known(specials, roles.get("eos_token")),
            borders=_borders(specials, family),
            added_tokens=tuple(specials),
        ),
        encoder=encoder,
        speller=table,
        report=LoadReport("tiktoken", f"a {family.name} ranks file", "table", ""),
    )


def read_ranks(content: bytes, what: str) -> dict[bytes, int]:
    """Return byte string to rank; an SmgError names the first line that is not `base64 rank`."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line:
            continue
        token, space, rank = line.partition(b" ")
        try:
            piece = base64.b64decode(token, validate=True)
        except binascii.Error:
            piece = b""
        if not (piece and space and rank.isdigit() and len(rank) <= 10):
            raise unusable(f"{what}: line {number} is not a token and its rank")
        ranks[piece] = int(rank)
    if len(set(ranks.values())) != len(ranks) or not ranks:
        raise unusable(f"{what}: it has no ranks, or one of them twice")
    missing = next((byte for byte in range(256) if bytes([byte]) not in ranks), None)
    if missing is not None:
        raise unusable(f"{what}: it has no rank for the byte {missing}")
    return ranks


class TiktokenEncoder:
    """`tiktoken`: about 1 ms per 25 KB; releases the interpreter while it works."""

    name = "tiktoken"

    def __init__(self, encoding: "tiktoken.Encoding", family: Family, bos: int | None) -> None:
        self._encoding = encoding
        self._nfc = family.nfc
        self._run_max = family.run_max
        self._begin = [] if bos is None else [bos]

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        """Return the ids of `text`; special tokens in it are special."""
        whole_unicode(text)  # tiktoken would silently replace what is no character
        if self._nfc:
            text = unicodedata.normalize("NFC", text)
        ids = array("I", self._begin if add_special_tokens else ())
        ids.extend(self._plain(text))
        return ids

    def _plain(self, text: str) -> list[int]:
        if self._run_max:
            return self._in_pieces(text, self._run_max)
        try:
            return self._encoding.encode(text, allowed_special="all")
        # Its pattern engine gives up on very long runs, by a ValueError or a panic.
        except BaseException as error:
            if not is_foreign(error):
                raise
        return self._in_pieces(text, RUN_MAX)

    def _in_pieces(self, text: str, run_max: int) -> list[int]:
        ids: list[int] = []
        try:
            for piece in cut_runs(text, run_max):
                ids += self._encoding.encode(piece, allowed_special="all")
        # A library's door, as above: now it is the text that cannot be encoded.
        except BaseException as error:
            raise encode_failed(text, error) from error
        return ids


def cut_runs(text: str, run_max: int) -> Iterator[str]:
    """Yield `text` in pieces of at most PIECE_MAX characters whose runs have at most `run_max`.

    A run is characters that are all white space, or all not. Short texts come back whole.
    """
    if len(text) <= run_max:
        yield text
        return
    for start in range(0, len(text), PIECE_MAX):
        piece = text[start : start + PIECE_MAX]
        sent = 0
        for run in re.finditer(r"\s+|\S+", piece):
            for cut in range(run.start() + run_max, run.end(), run_max):
                yield piece[sent:cut]
                sent = cut
        yield piece[sent:]


def _encoding(
    family: Family, ranks: dict[bytes, int], specials: Mapping[str, int]
) -> "tiktoken.Encoding":
    try:
        import tiktoken
    except ImportError as error:
        raise unusable(
            "a *.tiktoken file needs the package tiktoken: pip install 'smg-node[tiktoken]'",
            code="tiktoken_missing",
        ) from error
    with reading(f"the {family.name} ranks file"):
        return tiktoken.Encoding(
            family.name,
            pat_str=family.pattern,
            mergeable_ranks=ranks,
            special_tokens=dict(specials),
        )


def _specials(
    side: SideFiles, family: Family, ranks: Mapping[bytes, int]
) -> tuple[dict[str, int], frozenset[int]]:
    """Return the added tokens, and which of their ids are special: the files', else the family's."""
    added = side.added_tokens()
    if not added:
        known = dict(family.specials(len(ranks)))
        return known, frozenset(known.values())
    taken = frozenset(ranks.values())
    specials: dict[str, int] = {}
    for token in added:
        if token.token_id in taken or token.content in specials:
            raise unusable(
                f"tokenizer_config.json: added token {token.content!r} ({token.token_id}) is there twice"
            )
        specials[token.content] = token.token_id
    special_ids = {token.token_id for token in added if token.special}
    if family.name == "kimi":
        named = set(specials.values())
        for token_id in range(len(ranks), len(ranks) + KIMI_RESERVED):
            if token_id not in named:
                specials[reserved_kimi(token_id)] = token_id
                special_ids.add(token_id)
    if len(set(specials.values())) != len(specials):
        raise unusable("tokenizer_config.json: two added tokens have one id")
    return specials, frozenset(special_ids)


def _begins(side: SideFiles, family: Family) -> bool:
    flag = side.flag("add_bos_token")
    return family.around if flag is None else flag


def _spellings(ranks: Mapping[bytes, int], specials: Mapping[str, int], size: int) -> list[bytes]:
    spellings = [b""] * size
    for piece, token_id in ranks.items():
        spellings[token_id] = piece
    for text, token_id in specials.items():
        spellings[token_id] = text.encode()
    return spellings


def _known(specials: Mapping[str, int], text: str | None) -> frozenset[int]:
    return frozenset() if text is None or text not in specials else frozenset({specials[text]})


def _borders(specials: Mapping[str, int], family: Family) -> Borders:
    if family.nfc:
        return Borders((), "its texts are composed as a whole before they are cut")
    texts = sorted(specials)
    # Which of two that begin alike is taken is not defined by the library.
    for text, following in pairwise(texts):
        if following.startswith(text):
            return Borders((), f"its special tokens {text!r} and {following!r} begin alike")
    return Borders(tuple(texts), "" if texts else "it has no special tokens")
