"""Error type of the node, `SmgError`: its kind, the place in the request, and when to try again.

Every failure a caller may see is an `SmgError`. Its kind maps totally to an HTTP status and a gRPC
code; each dialect renders its own envelope from it. Mistakes of ours are assertions, not errors.
"""

from enum import Enum
from typing import Final, NamedTuple


class ErrorKind(Enum):
    """Kinds of failure by origin: caller (4xx), world (5xx, breaker), load (429, 503)."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    CLIENT_GONE = "client_gone"
    INTERNAL = "internal"
    UPSTREAM_FAILED = "upstream_failed"
    OVERLOADED = "overloaded"
    UPSTREAM_TIMEOUT = "upstream_timeout"


HTTP_STATUS: Final[dict[ErrorKind, int]] = {
    ErrorKind.INVALID_REQUEST: 400,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.RATE_LIMITED: 429,
    ErrorKind.CLIENT_GONE: 499,
    ErrorKind.INTERNAL: 500,
    ErrorKind.UPSTREAM_FAILED: 502,
    ErrorKind.OVERLOADED: 503,
    ErrorKind.UPSTREAM_TIMEOUT: 504,
}

# Numbers of the canonical gRPC status codes.
GRPC_CODE: Final[dict[ErrorKind, int]] = {
    ErrorKind.INVALID_REQUEST: 3,
    ErrorKind.UNAUTHENTICATED: 16,
    ErrorKind.FORBIDDEN: 7,
    ErrorKind.NOT_FOUND: 5,
    ErrorKind.CONFLICT: 10,
    ErrorKind.TOO_LARGE: 11,
    ErrorKind.RATE_LIMITED: 8,
    ErrorKind.CLIENT_GONE: 1,
    ErrorKind.INTERNAL: 13,
    ErrorKind.UPSTREAM_FAILED: 14,
    ErrorKind.OVERLOADED: 8,
    ErrorKind.UPSTREAM_TIMEOUT: 4,
}

# The `code` a client sees when the raiser names none.
DEFAULT_CODE: Final[dict[ErrorKind, str]] = {
    ErrorKind.INVALID_REQUEST: "invalid_value",
    ErrorKind.UNAUTHENTICATED: "invalid_api_key",
    ErrorKind.FORBIDDEN: "insufficient_permissions",
    ErrorKind.NOT_FOUND: "not_found",
    ErrorKind.CONFLICT: "conflict",
    ErrorKind.TOO_LARGE: "request_too_large",
    ErrorKind.RATE_LIMITED: "rate_limit_exceeded",
    ErrorKind.CLIENT_GONE: "client_gone",
    ErrorKind.INTERNAL: "internal_error",
    ErrorKind.UPSTREAM_FAILED: "upstream_error",
    ErrorKind.OVERLOADED: "overloaded",
    ErrorKind.UPSTREAM_TIMEOUT: "upstream_timeout",
}


class Excess(NamedTuple):
    """Numbers of a prompt that is too long: its tokens, the most that are taken, the context if it is known."""

    tokens: int
    most: int
    context: int | None = None


class SmgError(Exception):
    """A failure that may be reported to a caller.

    `where` is a JSON path into the caller's body (`messages[2].content`) or None. `code` is the
    machine-readable reason. `status` narrows the HTTP status within the kind (405..431 for
    INVALID_REQUEST, 501 for UPSTREAM_FAILED). `retry_after_s` is set for 429 and 503 only, `excess` for a
    prompt that is too long. The cause, where there is one, is the chained exception. `once`: what was done before
    it must not be done again, so a client that retries by itself is told not to. `challenge`: what `www-authenticate`
    says of the credential sent (RFC 6750), "" for nothing beyond its kind.
    """

    once = False
    challenge = ""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        where: str | None = None,
        code: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
        excess: Excess | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.where = where
        self.code = code if code is not None else DEFAULT_CODE[kind]
        self.status = status if status is not None else HTTP_STATUS[kind]
        self.retry_after_s = retry_after_s
        self.excess = excess

    def __repr__(self) -> str:
        return f"SmgError({self.kind.name}, {self.message!r}, where={self.where!r}, code={self.code!r})"


def invalid(message: str, where: str | None = None, code: str = "invalid_value") -> SmgError:
    """Return the error for a caller who is wrong at the JSON path `where`."""
    return SmgError(ErrorKind.INVALID_REQUEST, message, where=where, code=code)


def unsupported(message: str, where: str | None) -> SmgError:
    """Return the error for a known parameter that nothing here can honour without changing its meaning."""
    return invalid(message, where, code="unsupported_parameter")
