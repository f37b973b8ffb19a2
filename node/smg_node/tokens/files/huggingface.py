"""Hugging Face tokenizer: loads a tokenizer.json, checked against the library that defines the
format.

The reference is built first and asked everything that only it can answer: the ids of the probe texts
and the text of every id. Where a table and a fast encoder agree with it on all of that, they take
over. The reference is let go before the fast encoder is built: side by side, the two would take a
quarter of a gigabyte. What it said is kept as a `Proof`, and where there is one for these very files, it is not asked.

A fast encoder of 150,000 tokens takes a second to build, the reference a third of that. So where there is a proof of a
large vocabulary, the reference encodes at once, and the fast encoder takes over when it is ready (`LoadedTokenizer.faster`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

import tokenizers

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.decoding.reference_decoder import ReferenceSpeller
from smg_node.tokens.decoding.token_table import claimed_table, table_of
from smg_node.tokens.encoders import Encoder, FastEncoder, ReferenceEncoder
from smg_node.tokens.files.self_check import Expectation, disagreement, expectation
from smg_node.tokens.files.side_files import SideFiles, read_side_files
from smg_node.tokens.files.tokenizer_json import NAME, VOCABULARY_MAX, Definition, read_definition
from smg_node.tokens.files.verification_proof import (
    Proof,
    packed_pieces,
    sum_of_ids,
    unpacked_pieces,
)
from smg_node.tokens.library_errors import is_foreign, reading, unusable
from smg_node.tokens.loaded_tokenizer import (
    Borders,
    LoadedTokenizer,
    LoadReport,
    Speller,
    Vocabulary,
)

EncoderChoice: TypeAlias = Literal["auto", "tokenizers"]
EncoderT = TypeVar("EncoderT", bound=Encoder)

SLOW_BYTES: Final = 1 << 20
"""A fast encoder for a tokenizer.json of this size takes 0.2 s to build; below it nobody waits for one."""


class Proofs(Protocol):
    """Storage of proofs."""

    def find(self, bundle: TokenizerBundle) -> Proof | None:
        """Return what was proven about exactly these files, with the libraries of this process."""
        ...

    def keep(self, bundle: TokenizerBundle, proof: Proof) -> None:
        """Remember what was proven about these files."""
        ...


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers of the reference from before it was let go. `expected` is None if they are not
    needed.
    """

    vocabulary: Vocabulary
    speller: Speller
    why_no_table: str
    expected: Expectation | None
    pieces: bytes = b""
    """The vocabulary's spellings, packed; empty where there is no table made of them."""


def load_huggingface(
    bundle: TokenizerBundle,
    *,
    encoder: EncoderChoice,
    trim: Callable[[], None],
    proofs: Proofs | None = None,
) -> LoadedTokenizer:
    """Return the tokenizer of a bundle that has a tokenizer.json.

    `auto` takes the fast encoder if it passes the self-check. UPSTREAM_FAILED `tokenizer_invalid` for
    files no tokenizer can be made of, naming the file. `trim` is called between the two libraries, and at the end.
    With `proofs`, what was proven before is not proven again, and what is proven now is kept there.
    """
    side = read_side_files(bundle)
    definition = read_definition(bundle)
    kept = proofs if encoder == "auto" else None
    with reading(definition.name):
        proof = kept.find(bundle) if kept is not None else None
        again = _by_proof(bundle, definition, side, proof) if proof is not None else None
        if again is not None:
            trim()
            return again
        loaded, proof = _by_reference(bundle, definition, side, encoder, trim)
        if kept is not None and proof is not None:
            kept.keep(bundle, proof)
        trim()
    return loaded


def _by_reference(
    bundle: TokenizerBundle,
    original: Definition,
    side: SideFiles,
    encoder: EncoderChoice,
    trim: Callable[[], None],
) -> tuple[LoadedTokenizer, Proof | None]:
    """Return the tokenizer as the reference has it, and what was proven by that."""
    definition, reference = _complete(original, side)
    answers = _ask(reference, definition, side, check=encoder == "auto")
    # Let go of the reference where it is not needed, before the fast encoder takes its place.
    kept = reference if answers.why_no_table or answers.expected is None else None
    del reference
    trim()
    chosen, why = _choose(definition, answers.expected, trim)
    proof = None
    if chosen is None:
        chosen = ReferenceEncoder(kept or _open(definition))
    elif answers.expected is not None and not answers.why_no_table:
        proof = _proof(definition.changed(original), answers, answers.expected)
    report = LoadReport(
        encoder=chosen.name,
        why_encoder=why,
        speller="reference" if answers.why_no_table else "table",
        why_speller=answers.why_no_table,
    )
    return _tokenizer(bundle, answers.vocabulary, chosen, answers.speller, report), proof


def _by_proof(
    bundle: TokenizerBundle, original: Definition, side: SideFiles, proof: Proof
) -> LoadedTokenizer | None:
    """Return the tokenizer as `proof` has it; None where it does not hold here."""
    pieces = unpacked_pieces(proof.pieces)
    if pieces is None:
        return None
    special_ids = frozenset(proof.special_ids)
    table, _ = claimed_table(pieces, decoder=original.decoder, special_ids=special_ids)
    size = len(pieces)
    del pieces
    if table is None:
        return None
    definition = original.with_sections(proof.sections)
    is_slow = len(bundle.files[NAME]) >= SLOW_BYTES
    encoder: Encoder | None = _reopened(definition) if is_slow else _opened(definition)[0]
    encoder = _held(encoder, proof)
    if encoder is None:
        return None
    vocabulary = Vocabulary(
        size=size,
        special_ids=special_ids,
        special_tokens=side.roles(),
        eos_ids=frozenset(proof.eos_ids),
        borders=Borders(tuple(proof.borders), proof.why_no_borders),
        added_tokens=tuple(proof.added_tokens),
    )
    why = "the fast one is being built" if is_slow else ""
    report = LoadReport(encoder=encoder.name, why_encoder=why, speller="table", why_speller="")
    loaded = _tokenizer(bundle, vocabulary, encoder, table, report)
    if is_slow:
        loaded.faster = partial(_faster, definition, proof)
    return loaded


def _faster(definition: Definition, proof: Proof) -> tuple[Encoder | None, str]:
    """Return the fast encoder of a proven vocabulary and "", or None and why it is not used."""
    fast, why = _opened(definition)
    if fast is None:
        return None, why
    return (fast, "") if _held(fast, proof) else (None, "fastokens disagrees with what was proven")


def _held(encoder: EncoderT | None, proof: Proof) -> EncoderT | None:
    """Return `encoder` if it has the proven ids for every probe text, else None."""
    if encoder is None or sum_of_ids(expectation(encoder, proof.added_tokens)) != proof.ids_sum:
        return None
    return encoder


def _proof(sections: Mapping[str, bytes], answers: _Answers, expected: Expectation) -> Proof:
    vocabulary = answers.vocabulary
    return Proof(
        sections=sections,
        pieces=answers.pieces,
        special_ids=sorted(vocabulary.special_ids),
        eos_ids=sorted(vocabulary.eos_ids),
        added_tokens=vocabulary.added_tokens,
        borders=vocabulary.borders.tokens,
        why_no_borders=vocabulary.borders.why_not,
        ids_sum=sum_of_ids(expected),
    )


def _tokenizer(
    bundle: TokenizerBundle,
    vocabulary: Vocabulary,
    encoder: Encoder,
    speller: Speller,
    report: LoadReport,
) -> LoadedTokenizer:
    return LoadedTokenizer(
        digest=bundle.digest,
        vocabulary=vocabulary,
        encoder=encoder,
        speller=speller,
        report=report,
    )


def _open(definition: Definition) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_buffer(definition.content())


def _complete(definition: Definition, side: SideFiles) -> tuple[Definition, tokenizers.Tokenizer]:
    """Return the definition with what the side files add to it, and its reference tokenizer.

    Added tokens are taken only if they get the ids that were announced. `add_bos_token` and
    `add_eos_token`, where a file has one of them, decide what stands around a text.
    """
    reference = _open(definition)
    missing = definition.missing(side.added_tokens())
    if missing:
        more = definition.with_added(missing)
        candidate = _open(more)
        if all(candidate.token_to_id(token.content) == token.token_id for token in missing):
            definition, reference = more, candidate
    # Also the first thing asked of the reference: some broken files are found out only here.
    found = reference.encode_batch_fast([""], add_special_tokens=True)[0].ids
    around = _around(side, reference)
    if around is not None:
        before, after = around
        if found != [*before.values(), *after.values()]:
            definition = definition.with_around(before, after)
            reference = _open(definition)
    return definition, reference


def _around(
    side: SideFiles, reference: tokenizers.Tokenizer
) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
    """Return the tokens to put before and after a text, None if the files do not say."""
    if side.flag("add_bos_token") is None and side.flag("add_eos_token") is None:
        return None
    sides: list[dict[str, int]] = []
    for flag, role in (("add_bos_token", "bos_token"), ("add_eos_token", "eos_token")):
        token = side.roles().get(role) if side.flag(flag) else None
        token_id = reference.token_to_id(token) if token is not None else None
        sides.append({token: token_id} if token is not None and token_id is not None else {})
    return sides[0], sides[1]


def _ask(
    reference: tokenizers.Tokenizer, definition: Definition, side: SideFiles, *, check: bool
) -> _Answers:
    added = reference.get_added_tokens_decoder()
    special_ids = frozenset(token_id for token_id, token in added.items() if token.special)
    texts = {token_id: added[token_id].content for token_id in sorted(added)}
    pieces = _pieces(reference, definition.name)
    table, why_no_table = table_of(
        pieces, decoder=definition.decoder, special_ids=special_ids, reference=reference
    )
    speller: Speller = table or ReferenceSpeller(
        reference, pieces, added=texts, special_ids=special_ids
    )
    expected = None
    if check:
        encoder = ReferenceEncoder(reference)
        expected = expectation(encoder, list(texts.values()))
    return _Answers(
        vocabulary=Vocabulary(
            size=len(pieces),
            special_ids=special_ids,
            special_tokens=side.roles(),
            eos_ids=side.eos_ids(reference.token_to_id),
            borders=_borders(definition, added),
            added_tokens=tuple(texts.values()),
        ),
        speller=speller,
        why_no_table=why_no_table,
        expected=expected,
        pieces=packed_pieces(pieces) if check and table is not None else b"",
    )


def _pieces(reference: tokenizers.Tokenizer, name: str) -> list[str | None]:
    vocabulary = reference.get_vocab(with_added_tokens=True)
    largest = max(vocabulary.values(), default=-1)
    if not 0 <= largest < VOCABULARY_MAX:
        raise unusable(f"{name}: its largest id is {largest}; the most is {VOCABULARY_MAX - 1}")
    pieces: list[str | None] = [None] * (largest + 1)
    for piece, token_id in vocabulary.items():
        pieces[token_id] = piece
    return pieces


def _borders(definition: Definition, added: Mapping[int, tokenizers.AddedToken]) -> Borders:
    """Return the added tokens that cut a text whatever stands beside them."""
    if definition.looks_at_start:
        return Borders((), "its pre-tokenizer treats the start of a text differently")
    if definition.dropout:
        return Borders((), "its merges are random")
    # A normalized token is looked for only in the pieces that the others leave: it changes nothing.
    cutting = [token for token in added.values() if not token.normalized and token.content]
    for token in cutting:
        if token.lstrip or token.rstrip or token.single_word:
            return Borders((), f"its added token {token.content!r} looks at its neighbours")
    texts = tuple(sorted({token.content for token in cutting}))
    return Borders(texts, "" if texts else "it has no added tokens that cut a text")


def _choose(
    definition: Definition, expected: Expectation | None, trim: Callable[[], None]
) -> tuple[Encoder | None, str]:
    """Return the fast encoder and "", or None and why it is not used."""
    if expected is None:
        return None, "chosen by the settings"
    fast, why = _opened(definition)
    if fast is None:
        return None, why
    # What it was read from goes before its first use makes it larger by half: what it keeps of words.
    trim()
    found = disagreement(fast, expected)
    return (fast, "") if found is None else (None, f"fastokens disagrees: {found}")


def _reopened(definition: Definition) -> ReferenceEncoder | None:
    """Return the reference of what was proven, None where it cannot be made."""
    try:
        return ReferenceEncoder(_open(definition))
    # What was proven of these files does not hold for them after all: everything is asked anew.
    except BaseException as error:
        if not is_foreign(error):
            raise
        return None


def _opened(definition: Definition) -> tuple[FastEncoder | None, str]:
    """Return the fast encoder and "", or None and why there is none."""
    try:
        return FastEncoder(definition.brief()), ""
    # Foreign code on a stranger's file: whatever it throws, the reference takes over.
    except BaseException as error:
        if not is_foreign(error):
            raise
        return None, f"fastokens cannot read it: {error}"
