"""Vendor error: why a stand-in refuses a request, before any vendor's words for it."""

from enum import Enum


class Reason(Enum):
    """Why a vendor refuses. The values are the names that faults use."""

    INVALID = "invalid"
    UNKNOWN_FIELD = "unknown-field"
    UNSUPPORTED_PARAMETER = "unsupported-parameter"
    UNSUPPORTED_VALUE = "unsupported-value"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    SIGNATURE = "signature"
    BAD_STATE = "bad-state"
    NO_MODEL = "no-model"
    NOT_FOUND = "not-found"
    NO_ROUTE = "no-route"
    TOO_LARGE = "too-large"
    TOO_LONG = "too-long"
    CONTENT_FILTER = "content-filter"
    RATE = "rate"
    QUOTA = "quota"
    NO_MONEY = "no-money"
    SERVER = "server"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"


class VendorError(Exception):
    """One refusal. `path` names the field at fault; `retry_after_s` is how long to wait; `gate` says that the hosting
    refuses and not the model behind it, which matters where the two have different envelopes.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        path: str = "",
        retry_after_s: float | None = None,
        gate: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.path = path
        self.retry_after_s = retry_after_s
        self.gate = gate


def invalid(message: str, path: str = "") -> VendorError:
    """Return the refusal of a request that is wrong in itself."""
    return VendorError(Reason.INVALID, message, path=path)
