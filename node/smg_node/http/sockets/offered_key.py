"""Offered key: the API key that a browser's WebSocket carries among its subprotocols.

A page cannot set headers of a WebSocket, so OpenAI's clients offer `openai-insecure-api-key.KEY` as a
subprotocol. That name is a credential: it is moved to where keys are read, and goes no further.
"""

from typing import Final

from smg_node.http.message.request_head import Head

PROTOCOLS: Final = "sec-websocket-protocol"
_KEY: Final = "openai-insecure-api-key."
_CREDENTIALS: Final = frozenset({"authorization", "x-api-key", "x-goog-api-key"})


def offered_protocols(head: Head) -> list[str]:
    """Return the subprotocols that a client offers, in its order, from all headers of that name."""
    lines = [value for name, value in head.raw if name.lower() == PROTOCOLS.encode()]
    offered = b",".join(lines).decode("utf-8", "surrogateescape").split(",")
    return [name.strip() for name in offered if name.strip()]


def keyed(head: Head) -> Head:
    """Return the head with an offered key as its bearer token, and without the offers that carry one; the same head
    where none does.

    A key in a header counts before one in an offer: a client that can set headers needs no other way.
    """
    offered = offered_protocols(head)
    keys = [name[len(_KEY) :] for name in offered if name.startswith(_KEY)]
    if not keys:
        return head
    others = ", ".join(name for name in offered if not name.startswith(_KEY))
    # The framework's names are spelled as the client has them, and may be there twice: the first counts.
    headers = {name.lower(): head.headers[name] for name in head.headers}
    headers.pop(PROTOCOLS, None)
    raw = [(name, value) for name, value in head.raw if name.lower() != PROTOCOLS.encode()]
    if others:
        headers[PROTOCOLS] = others
        raw.append((PROTOCOLS.encode(), others.encode("utf-8", "surrogateescape")))
    if not _CREDENTIALS & headers.keys():
        bearer = f"Bearer {keys[0]}"
        headers["authorization"] = bearer
        raw.append((b"authorization", bearer.encode("utf-8", "surrogateescape")))
    return Head(
        head.method, head.target, headers, raw, http11=head.http11, keep_alive=head.keep_alive
    )
