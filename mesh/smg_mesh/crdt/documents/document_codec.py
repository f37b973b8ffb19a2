"""Document codec: summaries and updates of an exchange, and documents on disk, as msgpack bytes.

An exchange carries both without looking into them. Everything names its epoch, so that an update of one
epoch can never be merged into the document of another.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from smg_mesh.crdt.documents.document import DocumentError

EPOCH_MAX: Final = (1 << 48) - 1
"""More than can be begun; a larger number is a mistake that would leave no later one."""
_KEPT_VERSION: Final = 1
_CHECK_BYTES: Final = 16

T = TypeVar("T")


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """Summary of one side, asked of the other: `digest` is over
    contents, `vector` over what was seen.
    """

    epoch: int
    name: str
    digest: bytes
    vector: bytes


class Update(msgspec.Struct, frozen=True, array_like=True):
    """Update with what the other side lacked. `owners`: of all arrays there are.
    `whole`: begin anew from this.
    """

    epoch: int
    owners: tuple[str, ...]
    update: bytes
    whole: bool = False


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A document on disk. `left`: (root, name, bytes) of earlier epochs not yet written again."""

    version: int
    epoch: int
    begun_ms: int
    owners: tuple[str, ...]
    update: bytes
    left: tuple[tuple[str, str, bytes], ...]


_encoder = msgspec.msgpack.Encoder()
_summaries = msgspec.msgpack.Decoder(Summary)
_updates = msgspec.msgpack.Decoder(Update)
_kept = msgspec.msgpack.Decoder(Kept)


def pack(said: Summary | Update) -> bytes:
    """Return the bytes of it."""
    return _encoder.encode(said)


def read_summary(content: bytes) -> Summary:
    """Return the summary; DocumentError."""
    said = _read(_summaries, content)
    check_epoch(said.epoch)
    return said


def read_update(content: bytes) -> Update:
    """Return the update; DocumentError."""
    said = _read(_updates, content)
    check_epoch(said.epoch)
    return said


def pack_kept(kept: Kept) -> bytes:
    """Return the bytes for the disk: a sum over the rest first, for disks forget bits."""
    content = _encoder.encode(kept)
    return _sum(content) + content


def read_kept(content: bytes) -> Kept:
    """Return what was kept; DocumentError("corrupt") if one bit of it has changed."""
    if content[:_CHECK_BYTES] != _sum(content[_CHECK_BYTES:]):
        raise DocumentError("corrupt", "the sum over it is another one")
    kept = _read(_kept, content[_CHECK_BYTES:])
    check_epoch(kept.epoch)
    if kept.version != _KEPT_VERSION:
        raise DocumentError("version", f"it is of version {kept.version}")
    return kept


def kept_of(
    epoch: int,
    begun_ms: int,
    owners: Sequence[str],
    update: bytes,
    left: Sequence[tuple[str, str, bytes]],
) -> Kept:
    """Return what is to be kept, in the version that is written now."""
    return Kept(_KEPT_VERSION, epoch, begun_ms, tuple(owners), update, tuple(left))


def check_epoch(epoch: int) -> None:
    """Raise DocumentError for a number that cannot be one."""
    if not 0 <= epoch <= EPOCH_MAX:
        raise DocumentError("epoch", f"{epoch} is no epoch")


def _read(decoder: "msgspec.msgpack.Decoder[T]", content: bytes) -> T:
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DocumentError("corrupt", str(error)) from error


def _sum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_CHECK_BYTES).digest()
