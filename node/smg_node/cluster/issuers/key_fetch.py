"""Key fetch: the keys of one issuer, found by its discovery document or where its operator says they are."""

from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.issuer_documents import (
    DISCOVERY_BYTES_MAX,
    KEYS_BYTES_MAX,
    DocumentError,
    discovery_url,
    max_age_ms,
    read_discovery,
    shared_keys,
    url_trouble,
)
from smg_node.cluster.issuers.issuer_client import ask_issuer
from smg_node.cluster.issuers.key_ports import FetchedKeys, IssuerError


async def fetch_keys(issuer: Issuer) -> FetchedKeys:
    """Return the keys that an issuer has now; IssuerError says in a line why there are none."""
    try:
        url = issuer.keys_url or await _discovered(issuer)
        _check(url)
        answer = await ask_issuer(
            url,
            bytes_max=KEYS_BYTES_MAX,
            authority=issuer.authority,
            token_file=issuer.token_file,
        )
        return FetchedKeys(shared_keys(answer.body), max_age_ms(answer.headers))
    except DocumentError as error:
        raise IssuerError(str(error)) from None


async def _discovered(issuer: Issuer) -> str:
    url = discovery_url(issuer.issuer)
    _check(url)
    try:
        answer = await ask_issuer(
            url,
            bytes_max=DISCOVERY_BYTES_MAX,
            authority=issuer.authority,
            token_file=issuer.token_file,
        )
    except IssuerError as error:
        raise IssuerError(f"discovery: {error}") from None
    return read_discovery(answer.body, issuer.issuer)


def _check(url: str) -> None:
    if (why := url_trouble(url)) is not None:
        raise IssuerError(f"its URL {why}")
