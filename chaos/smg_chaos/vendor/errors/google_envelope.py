"""Google's envelope of errors: a status of its RPC system, and details with types."""

from collections.abc import Mapping
from typing import Any, Final

from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

_TYPES: Final = "type.googleapis.com/google.rpc."
_STATUS: Final[Mapping[Reason, tuple[int, str]]] = {
    Reason.UNAUTHORIZED: (401, "UNAUTHENTICATED"),
    Reason.FORBIDDEN: (403, "PERMISSION_DENIED"),
    Reason.SIGNATURE: (403, "PERMISSION_DENIED"),
    Reason.NO_MODEL: (404, "NOT_FOUND"),
    Reason.NOT_FOUND: (404, "NOT_FOUND"),
    Reason.NO_ROUTE: (404, "NOT_FOUND"),
    Reason.TOO_LARGE: (413, "INVALID_ARGUMENT"),
    Reason.RATE: (429, "RESOURCE_EXHAUSTED"),
    Reason.QUOTA: (429, "RESOURCE_EXHAUSTED"),
    Reason.NO_MONEY: (403, "PERMISSION_DENIED"),
    Reason.SERVER: (500, "INTERNAL"),
    Reason.UNAVAILABLE: (503, "UNAVAILABLE"),
    Reason.OVERLOADED: (503, "UNAVAILABLE"),
    Reason.TIMEOUT: (504, "DEADLINE_EXCEEDED"),
}
INVALID_KEY: Final = "API key not valid. Please pass a valid API key."


def google_status(error: VendorError) -> tuple[int, str]:
    """Return the HTTP status and the name of the RPC status. A wrong API key is an invalid argument there."""
    if error.message == INVALID_KEY:
        return 400, "INVALID_ARGUMENT"
    return _STATUS.get(error.reason, (400, "INVALID_ARGUMENT"))


def google_body(error: VendorError) -> dict[str, Any]:
    """Return the body."""
    code, status = google_status(error)
    said: dict[str, Any] = {"code": code, "message": error.message, "status": status}
    if details := _details(error):
        said["details"] = details
    return {"error": said}


def _details(error: VendorError) -> list[dict[str, Any]]:
    if error.message == INVALID_KEY:
        domain = {"domain": "googleapis.com", "metadata": {"service": "generativelanguage"}}
        return [{"@type": f"{_TYPES}ErrorInfo", "reason": "API_KEY_INVALID", **domain}]
    if error.reason is Reason.UNKNOWN_FIELD:
        row = {"field": error.path, "description": error.message}
        return [{"@type": f"{_TYPES}BadRequest", "fieldViolations": [row]}]
    if error.reason not in (Reason.RATE, Reason.QUOTA):
        return []
    per = "PerDay" if error.reason is Reason.QUOTA else "PerMinute"
    what = "InputTokens" if error.path == "tokens" else "Requests"
    quota = {
        "quotaMetric": f"generativelanguage.googleapis.com/generate_content_{what.lower()}",
        "quotaId": f"GenerateContent{what}{per}PerProjectPerModel",
    }
    details: list[dict[str, Any]] = [{"@type": f"{_TYPES}QuotaFailure", "violations": [quota]}]
    if error.retry_after_s is not None:
        wait = f"{error.retry_after_s:.9f}".rstrip("0").rstrip(".") + "s"
        details.append({"@type": f"{_TYPES}RetryInfo", "retryDelay": wait})
    return details
