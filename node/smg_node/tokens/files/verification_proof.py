"""Verification proof: record of what the reference library said of a vocabulary, so that it is not
asked at each start.

Reading a vocabulary of 150,000 takes two parts: the reference is built and asked for the text of
every id and the ids of every probe text (1.2 s), then the fast encoder is built (0.8 s). The first
part has the same outcome for the same files and the same libraries, so it is written down as a
`Proof` by the process that did it, and a process that takes the place of one that died goes by it.
The fast encoder is held against the ids all the same: it has to be warmed up anyhow.

A proof is found by `proof_key`, in which the sum of every file and the versions of all that had a part in it are. Only what
was proven is written down: where the reference is still needed, it is asked each time.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import fastokens
import msgspec
import tokenizers

from smg_node import __version__
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.self_check import Expectation

_FORM: Final = 1
"""One more whenever reading the same files has another outcome than before."""
_SUM_BYTES: Final = 32
PROOF_MAX_BYTES: Final = 64 << 20
"""A quarter of a gigabyte of memory when read; the largest vocabulary in use makes 4 MB."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Verified facts about one bundle of files."""

    sections: Mapping[str, bytes]
    """Sections of tokenizer.json that the other files changed, by name, as JSON."""
    pieces: bytes
    """The vocabulary's own spellings by id, see `packed_pieces`."""
    special_ids: Sequence[int]
    eos_ids: Sequence[int]
    added_tokens: Sequence[str]
    borders: Sequence[str]
    why_no_borders: str
    ids_sum: bytes
    """See `sum_of_ids`."""


_WRITER: Final = msgspec.msgpack.Encoder()
_READER: Final = msgspec.msgpack.Decoder(Proof)
_PIECES: Final = msgspec.msgpack.Decoder(list[str | None])


def proof_key(bundle: TokenizerBundle) -> str:
    """Return the hex SHA-256 of everything that a proof about `bundle` depends on; 12 ms for 6 MB."""
    versions = (_FORM, __version__, tokenizers.__version__, _fast_version())
    total = hashlib.sha256(repr(versions).encode())
    for name in sorted(bundle.files):
        content = bundle.files[name]
        total.update(f"\0{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def write_proof(proof: Proof) -> bytes:
    """Return `proof` as bytes that say themselves whether they are whole."""
    content = _WRITER.encode(proof)
    return hashlib.sha256(content).digest() + content


def read_proof(written: bytes) -> Proof | None:
    """Return what `write_proof` was given; None for any other bytes."""
    content = written[_SUM_BYTES:]
    if hashlib.sha256(content).digest() != written[:_SUM_BYTES]:
        return None
    try:
        return _READER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def packed_pieces(pieces: Sequence[str | None]) -> bytes:
    """Return `pieces` in a tenth of the memory."""
    return _WRITER.encode(pieces)


def unpacked_pieces(packed: bytes) -> list[str | None] | None:
    """Return what `packed_pieces` was given; None for anything else."""
    try:
        return _PIECES.decode(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def sum_of_ids(expected: Expectation) -> bytes:
    """Return the SHA-256 over all texts and their ids, so that two that agree on it agree on every id."""
    total = hashlib.sha256()
    for text, *both in zip(expected.texts, expected.plain, expected.wrapped, strict=True):
        _add(total, text.encode("utf-8", "surrogatepass"))
        for ids in both:
            _add(total, None if ids is None else ids.tobytes())
    return total.digest()


def _add(total: "hashlib._Hash", part: bytes | None) -> None:
    total.update(b"-" if part is None else b"%d:" % len(part) + part)


def _fast_version() -> str:
    # It says nothing of itself; what was installed does.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(fastokens.__name__)
    except PackageNotFoundError:
        return ""
