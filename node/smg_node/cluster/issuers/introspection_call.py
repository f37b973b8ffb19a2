"""Introspection call: one question to an issuer about one opaque token (RFC 7662), as a client of it."""

import asyncio
from base64 import b64encode
from urllib.parse import quote_plus, urlencode

from smg_node.access.tokens.introspection_memory import ANSWER_BYTES_MAX
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.issuer_documents import url_trouble
from smg_node.cluster.issuers.issuer_client import ask_issuer, read_secret
from smg_node.cluster.issuers.key_ports import IssuerError


async def ask_about(issuer: Issuer, token: str) -> bytes:
    """Return an issuer's answer about a token; IssuerError."""
    at = issuer.introspection
    assert at is not None, "only issuers with introspection are asked"
    if (why := url_trouble(at.url)) is not None:
        raise IssuerError(f"the URL of its introspection {why}")
    secret = await asyncio.to_thread(read_secret, at.client_secret_file)
    # RFC 6749 2.3.1: both are encoded as in forms, so that a colon in an id is none.
    pair = f"{quote_plus(at.client_id)}:{quote_plus(secret)}"
    answer = await ask_issuer(
        at.url,
        bytes_max=ANSWER_BYTES_MAX,
        authority=issuer.authority,
        form=urlencode({"token": token, "token_type_hint": "access_token"}).encode(),
        headers={
            "authorization": f"Basic {b64encode(pair.encode()).decode()}",
            "content-type": "application/x-www-form-urlencoded",
        },
    )
    return answer.body
