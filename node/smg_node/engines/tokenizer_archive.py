"""Tokenizer archive: unpacks the zip file an engine sends; checked, bounded, in memory only.

An engine is a machine of ours, but what it sends was built from downloaded files, so the
archive is treated as hostile: its sum must be right; names are plain and relative; sizes are counted
while inflating, never taken from the archive's own words; what neither a tokenizer nor a model's image processor
needs is not kept.
"""

import hashlib
import io
import re
import zlib
from typing import TYPE_CHECKING, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle

if TYPE_CHECKING:
    # A node that waits for its first worker has no use for it.
    import zipfile

ARCHIVE_MAX_BYTES: Final = 256 * 1024 * 1024
FILES_MAX: Final = 256
RATIO_MAX: Final = 200
"""Inflated over deflated bytes: vocabularies reach about 10, a file of zeros 1,000."""
RATIO_FREE_BYTES: Final = 1024 * 1024
"""Files up to this size may have any ratio: a small file of blanks harms nobody."""

DIRECTORY_MAX_BYTES: Final = 256 * 1024
"""256 entries with long names; each entry costs half a kilobyte of Python objects before any check."""

_END_OF_DIRECTORY: Final = b"PK\x05\x06"
_ZIP64_LOCATOR: Final = b"PK\x06\x07"
_END_BYTES: Final = 22
_END_SEARCHED_BYTES: Final = _END_BYTES + 0xFFFF
_PIECE_BYTES: Final = 256 * 1024
_NAMES: Final = frozenset(
    {
        "tokenizer.json",
        "tokenizer_config.json",
        "config.json",
        "generation_config.json",
        "special_tokens_map.json",
        "chat_template.json",
        "chat_template.jinja",
        "preprocessor_config.json",
        "processor_config.json",
        "video_preprocessor_config.json",
    }
)
_TIKTOKEN: Final = re.compile(r"[A-Za-z0-9._-]{1,120}\.tiktoken|tiktoken\.model")
_TEMPLATE: Final = re.compile(r"(additional_chat_templates/)?[A-Za-z0-9._-]{1,120}\.jinja")
_UNIX: Final = 3
_LINK: Final = 0o120000
_KIND: Final = 0o170000


def bundle_from_archive(
    data: bytes, *, sha256: str, origin: str, max_bytes: int = ARCHIVE_MAX_BYTES
) -> TokenizerBundle:
    """Return the files of an archive whose hex SHA-256 is `sha256`.

    UPSTREAM_FAILED for a wrong sum, a damaged or hostile archive, one that is larger than `max_bytes`
    inflated, or one without a tokenizer. Blocks for about 5 ms a megabyte: call it in a thread.
    """
    import zipfile

    if not data:
        raise broken(origin, "it is empty")
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256.lower():
        what = "has no checksum" if not sha256 else "does not match its checksum"
        raise broken(origin, f"it {what}")
    _check_directory(data, origin)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = _files(archive, origin, max_bytes)
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,  # encrypted
        NotImplementedError,  # an unknown compression
        ValueError,
    ) as error:
        raise broken(origin, "it is not a readable zip archive") from error
    if not any(name == "tokenizer.json" or _TIKTOKEN.fullmatch(name) for name in files):
        raise broken(origin, "it has neither a tokenizer.json nor a tiktoken file")
    return TokenizerBundle(files, digest, origin)


def broken(origin: str, why: str) -> SmgError:
    """Return the error for a tokenizer that cannot be used."""
    return SmgError(
        ErrorKind.UPSTREAM_FAILED, f"the tokenizer of {origin}: {why}", code="tokenizer_broken"
    )


def _check_directory(data: bytes, origin: str) -> None:
    """Refuse a table of contents that would cost gigabytes to read, before anything reads it."""
    at = data.rfind(_END_OF_DIRECTORY, max(0, len(data) - _END_SEARCHED_BYTES))
    if at < 0 or len(data) - at < _END_BYTES or _ZIP64_LOCATOR in data[max(0, at - 20) : at]:
        raise broken(origin, "it is not a readable zip archive")
    size = int.from_bytes(data[at + 12 : at + 16], "little")
    if size > DIRECTORY_MAX_BYTES:
        raise broken(origin, f"its table of contents has {size} bytes")


def _files(archive: "zipfile.ZipFile", origin: str, max_bytes: int) -> dict[str, bytes]:
    members = archive.infolist()
    if len(members) > FILES_MAX:
        raise broken(origin, f"it has {len(members)} files, at most {FILES_MAX} are read")
    files: dict[str, bytes] = {}
    left = max_bytes
    for member in members:
        _check_name(member, origin)
        if not _wanted(member.filename):
            continue
        if member.filename in files:
            raise broken(origin, f"{member.filename} is in it twice")
        content = _inflated(archive, member, origin, left)
        left -= len(content)
        files[member.filename] = content
    return files


def _check_name(member: "zipfile.ZipInfo", origin: str) -> None:
    name = member.filename
    parts = name.split("/")
    absolute = name.startswith("/") or ":" in parts[0]
    if absolute or "\\" in name or "\0" in member.orig_filename or ".." in parts:
        raise broken(origin, f"it holds a file called {name[:80]!r}")
    if member.create_system == _UNIX and (member.external_attr >> 16) & _KIND == _LINK:
        raise broken(origin, f"{name[:80]!r} in it is a link")


def _wanted(name: str) -> bool:
    return bool(name in _NAMES or _TIKTOKEN.fullmatch(name) or _TEMPLATE.fullmatch(name))


def _inflated(
    archive: "zipfile.ZipFile", member: "zipfile.ZipInfo", origin: str, left: int
) -> bytes:
    bound = max(RATIO_FREE_BYTES, member.compress_size * RATIO_MAX)
    pieces: list[bytes] = []
    size = 0
    with archive.open(member) as source:
        while piece := source.read(_PIECE_BYTES):
            size += len(piece)
            if size > left:
                raise broken(origin, "it is too large inflated")
            if size > bound:
                raise broken(origin, f"{member.filename} grows more than {RATIO_MAX}-fold")
            pieces.append(piece)
    return b"".join(pieces)
