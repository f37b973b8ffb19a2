"""Provider headers: which of a client's go to a vendor, and which of a vendor's go to a client. Pure.

To the vendor go few, by name. To the client goes what tells of the answer: never what tells of the account, its
limits, or the places that the answer came through.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from smg_node.providers import hosting

VALUE_MAX_CHARACTERS: Final = 4_096

_ALWAYS: Final = ("accept-language",)
_BY_DIALECT: Final[Mapping[str, Sequence[str]]] = {
    hosting.MESSAGES: ("anthropic-beta",),
    hosting.COUNT_MESSAGES: ("anthropic-beta",),
    hosting.CHAT: ("openai-beta",),
    hosting.RESPONSES: ("openai-beta",),
}
_BY_KIND: Final[Mapping[str, Sequence[str]]] = {"xai": ("x-grok-conv-id",)}
"""Headers of one vendor, whatever the dialect."""

_OWN: Final = frozenset(
    [
        "alt-svc",
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "location",
        "nel",
        "proxy-authenticate",
        "proxy-connection",
        "report-to",
        "retry-after",
        "retry-after-ms",
        "server",
        "server-timing",
        "set-cookie",
        "set-cookie2",
        "strict-transport-security",
        "te",
        "traceresponse",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
        "www-authenticate",
        "x-should-retry",
    ]
)
"""Between this node and the vendor, or between this node and its client."""
_ACCOUNT: Final = frozenset(
    [
        "anthropic-organization-id",
        "anthropic-workspace-id",
        "openai-organization",
        "openai-project",
        "ratelimit",
        "ratelimit-policy",
        "x-request-id",
        "request-id",
        "x-goog-user-project",
    ]
)
_PREFIXES: Final = (
    "access-control-",
    "anthropic-ratelimit-",
    "apim-",
    "azureml-",
    "cf-",
    "ratelimit-",
    "x-amz-",
    "x-amzn-",
    "x-envoy-",
    "x-groq-",
    "x-ms-",
    "x-ratelimit-",
    "x-smg-",
)
_REQUEST_IDS: Final = (
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-goog-request-id",
    "x-groq-request-id",
    "cf-ray",
)


def to_vendor(
    headers: Mapping[str, str], kind: str, operation: str, more: Collection[str] = ()
) -> dict[str, str]:
    """Return the client's headers that go along to a provider of `kind` whose dialect the client speaks.

    Names are in lower case, in `headers` too; `more` are those that the operator lets pass.
    """
    names = (*_ALWAYS, *_BY_DIALECT.get(operation, ()), *_BY_KIND.get(kind, ()), *sorted(more))
    found = {name: headers.get(name, "") for name in names}
    return {name: value for name, value in found.items() if _fits(value)}


def to_client(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the vendor's headers that pass to the client; names are in lower case, and are so in `headers`."""
    return {
        name: value
        for name, value in headers.items()
        if name not in _OWN
        and name not in _ACCOUNT
        and not name.startswith(_PREFIXES)
        and _fits(value)
    }


def vendor_request_id(headers: Mapping[str, str]) -> str:
    """Return the id by which the vendor's support finds a request, "" if it told none."""
    found = (headers.get(name, "") for name in _REQUEST_IDS)
    return next((value[:256] for value in found if _fits(value)), "")


def _fits(value: str) -> bool:
    return 0 < len(value) <= VALUE_MAX_CHARACTERS and value.isprintable() and value.isascii()
