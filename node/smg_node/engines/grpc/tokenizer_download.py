"""Tokenizer download: collects the archive that GetTokenizer streams in pieces, with its
SHA-256.
"""

import asyncio
from typing import Final

from smg_grpc_proto.generated import common_pb2

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.contracts.wire import parsed
from smg_node.engines.tokenizer_archive import broken, bundle_from_archive
from smg_node.engines.transport.transport import MessageStream

PIECES_MAX: Final = 1_000_000
"""256 MiB in pieces of 64 KiB are 4,096; an engine that sends empty ones for ever is stopped here."""


async def read_bundle(stream: MessageStream, *, origin: str, max_bytes: int) -> TokenizerBundle:
    """Return the tokenizer's files, unzipped beside the loop; UPSTREAM_FAILED for an archive that is no good."""
    data, sha256 = await read_tokenizer(stream, origin=origin, max_bytes=max_bytes)
    return await asyncio.to_thread(
        bundle_from_archive, data, sha256=sha256, origin=origin, max_bytes=max_bytes
    )


async def read_tokenizer(
    stream: MessageStream, *, origin: str, max_bytes: int
) -> tuple[bytes, str]:
    """Return the archive and its hex SHA-256; UPSTREAM_FAILED once it is larger than `max_bytes`."""
    archive = bytearray()
    sha256 = ""
    pieces = 0
    async for batch in stream:
        for data in batch:
            piece = parsed(common_pb2.GetTokenizerChunk, data)
            archive += piece.data
            sha256 = piece.sha256 or sha256
            pieces += 1
            if len(archive) > max_bytes or pieces > PIECES_MAX:
                raise broken(origin, f"it has more than {max_bytes} bytes")
    return bytes(archive), sha256
