"""Fetch: the one door that makers of tokens have to the network, and what they read through it."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.made_token import token_error
from smg_node.providers.failures.vendor_words import scrubbed, vendor_words

FORM: Mapping[str, str] = {
    "content-type": "application/x-www-form-urlencoded",
    "accept": "application/json",
}


class Fetch(Protocol):
    """One request and its whole answer; OSError, TimeoutError included, where there is none."""

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """Return the status and the body."""
        ...


async def fetched(
    fetch: Fetch, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
) -> bytes:
    """Return the body of a good answer; UPSTREAM_FAILED `provider_token` for another one, or for none."""
    place = place_of(url)
    try:
        status, answer = await fetch(method, url, headers, body)
    except OSError as error:
        why = "did not answer in time" if isinstance(error, TimeoutError) else "cannot be reached"
        raise token_error(f"{place} {why}") from error
    if status != 200:
        raise _refused(place, status, answer)
    return answer


async def fetched_json(
    fetch: Fetch, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
) -> Mapping[str, Any]:
    """Return the object of a good answer; errors as `fetched`."""
    answer = await fetched(fetch, method, url, headers, body)
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Without its cause: the answer may hold half a token.
        raise token_error(f"{place_of(url)} answered no JSON object") from None


def form(**fields: str) -> bytes:
    """Return the fields of a form as a body."""
    return urlencode(fields).encode()


def place_of(url: str) -> str:
    """Return the host and path of a URL, which tell where a request went and nothing of what it held."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _refused(place: str, status: int, answer: bytes) -> SmgError:
    words = vendor_words({}, answer)
    told = ": ".join(filter(None, (*words.codes[:1], scrubbed(words.message)[:300])))
    return token_error(f"{place} answered {status}{f' ({told})' if told else ''}")
