"""Token fetch: one request to the issuer of a server's access tokens, over HTTP."""

from collections.abc import Mapping
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from smg_node.cluster.mcp.client_tokens import FETCH_S, Fetch
from smg_node.engines.http.aiohttp_client import trusting

ANSWER_MAX_BYTES: Final = 1_048_576


def token_fetch(proxy: str = "") -> Fetch:
    """Return what posts to issuers, through a proxy if there is one; redirects are not followed."""

    async def fetch(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        return await _posted(url, headers, body, proxy)

    return fetch


async def _posted(
    url: str, headers: Mapping[str, str], body: bytes, proxy: str
) -> tuple[int, bytes]:
    connector = TCPConnector(ssl=trusting() if url.startswith("https:") else True)
    timeout = ClientTimeout(total=FETCH_S)
    async with ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        try:
            async with session.post(
                url, headers=dict(headers), data=body, allow_redirects=False, proxy=proxy or None
            ) as answer:
                # `content.read(n)` would give what is there by now, which may be half a token.
                received = bytearray()
                async for piece in answer.content.iter_any():
                    received += piece
                    if len(received) > ANSWER_MAX_BYTES:
                        raise OSError("an answer of more than a mebibyte")
                return answer.status, bytes(received)
        except (ClientError, ValueError) as error:
            raise OSError(type(error).__name__) from error
