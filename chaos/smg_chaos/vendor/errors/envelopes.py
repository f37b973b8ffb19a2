"""Envelopes of errors: status, headers and body of one refusal, as each vendor writes it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from smg_chaos.vendor.errors.aws_envelope import aws_reply
from smg_chaos.vendor.errors.google_envelope import google_body, google_status
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

Family = Literal[
    "openai", "azure", "anthropic", "google", "aws", "xai", "groq", "mistral", "openrouter",
    "snowflake",
]  # fmt: skip


class ErrorReply(NamedTuple):
    """What goes over the wire."""

    status: int
    headers: dict[str, str]
    body: Any


_STATUS: Final[Mapping[Reason, int]] = {
    Reason.INVALID: 400,
    Reason.UNKNOWN_FIELD: 400,
    Reason.UNSUPPORTED_PARAMETER: 400,
    Reason.UNSUPPORTED_VALUE: 400,
    Reason.UNAUTHORIZED: 401,
    Reason.FORBIDDEN: 403,
    Reason.SIGNATURE: 403,
    Reason.BAD_STATE: 400,
    Reason.NO_MODEL: 404,
    Reason.NOT_FOUND: 404,
    Reason.NO_ROUTE: 404,
    Reason.TOO_LARGE: 413,
    Reason.TOO_LONG: 400,
    Reason.CONTENT_FILTER: 400,
    Reason.RATE: 429,
    Reason.QUOTA: 429,
    Reason.NO_MONEY: 402,
    Reason.SERVER: 500,
    Reason.UNAVAILABLE: 503,
    Reason.OVERLOADED: 503,
    Reason.TIMEOUT: 504,
}
_OPENAI_TYPES: Final[Mapping[Reason, tuple[str, str | None]]] = {
    Reason.UNKNOWN_FIELD: ("invalid_request_error", "unknown_parameter"),
    Reason.UNSUPPORTED_PARAMETER: ("invalid_request_error", "unsupported_parameter"),
    Reason.UNSUPPORTED_VALUE: ("invalid_request_error", "unsupported_value"),
    Reason.UNAUTHORIZED: ("invalid_request_error", "invalid_api_key"),
    Reason.BAD_STATE: ("invalid_request_error", "invalid_encrypted_content"),
    Reason.NO_MODEL: ("invalid_request_error", "model_not_found"),
    Reason.TOO_LONG: ("invalid_request_error", "context_length_exceeded"),
    Reason.CONTENT_FILTER: ("invalid_request_error", "content_policy_violation"),
    Reason.RATE: ("requests", "rate_limit_exceeded"),
    Reason.QUOTA: ("insufficient_quota", "insufficient_quota"),
    Reason.NO_MONEY: ("billing_error", "billing_hard_limit_reached"),
    Reason.SERVER: ("server_error", None),
    Reason.UNAVAILABLE: ("server_error", "service_unavailable"),
    Reason.OVERLOADED: ("server_error", "overloaded"),
    Reason.TIMEOUT: ("server_error", "timeout"),
}
_ANTHROPIC: Final[Mapping[Reason, tuple[int, str]]] = {
    Reason.UNAUTHORIZED: (401, "authentication_error"),
    Reason.FORBIDDEN: (403, "permission_error"),
    Reason.SIGNATURE: (403, "permission_error"),
    Reason.NO_MODEL: (404, "not_found_error"),
    Reason.NOT_FOUND: (404, "not_found_error"),
    Reason.NO_ROUTE: (404, "not_found_error"),
    Reason.TOO_LARGE: (413, "request_too_large"),
    Reason.RATE: (429, "rate_limit_error"),
    Reason.QUOTA: (400, "invalid_request_error"),
    Reason.NO_MONEY: (402, "billing_error"),
    Reason.SERVER: (500, "api_error"),
    Reason.UNAVAILABLE: (503, "api_error"),
    Reason.OVERLOADED: (529, "overloaded_error"),
    Reason.TIMEOUT: (504, "timeout_error"),
}
_MISTRAL_UNPROCESSABLE: Final = 422


def reply_of(error: VendorError, family: Family, request_id: str) -> ErrorReply:
    """Return one vendor's answer to a refused request."""
    reply = _REPLIES[family](error, request_id)
    if error.retry_after_s is not None and family not in ("google", "aws"):
        reply.headers.setdefault("retry-after", str(max(1, round(error.retry_after_s))))
    return reply


def inband_body(error: VendorError, family: Family, request_id: str) -> Any:
    """Return the body of an error that comes after the status 200, inside the stream."""
    reply = reply_of(error, family, request_id)
    if family == "groq":
        reply.body["error"]["status_code"] = reply.status
    return reply.body


def _openai(error: VendorError, request_id: str) -> ErrorReply:
    kind, code = _OPENAI_TYPES.get(error.reason, ("invalid_request_error", None))
    if error.reason is Reason.RATE and error.path == "tokens":
        kind = "tokens"
    path = None if error.reason is Reason.RATE else error.path or None
    body = {"error": {"message": error.message, "type": kind, "param": path, "code": code}}
    headers = {"x-request-id": request_id}
    if error.reason is Reason.RATE and error.retry_after_s is not None:
        headers["retry-after-ms"] = str(round(error.retry_after_s * 1000))
    if error.reason is Reason.QUOTA:
        headers["x-should-retry"] = "false"
    return ErrorReply(_STATUS[error.reason], headers, body)


def _azure(error: VendorError, request_id: str) -> ErrorReply:
    status = _STATUS[error.reason]
    headers = {"apim-request-id": request_id, "x-ms-region": "East US 2"}
    if error.retry_after_s is not None:
        headers["retry-after-ms"] = str(round(error.retry_after_s * 1000))
    if error.reason is Reason.CONTENT_FILTER:
        return ErrorReply(status, headers, _filtered(error))
    gates = (Reason.UNAUTHORIZED, Reason.FORBIDDEN, Reason.RATE, Reason.QUOTA, Reason.NO_ROUTE)
    if error.reason is Reason.NO_MODEL:
        code = "DeploymentNotFound"
    elif error.reason in gates:
        code = str(status)
    else:
        reply = _openai(error, request_id)
        return ErrorReply(status, headers, reply.body)
    return ErrorReply(status, headers, {"error": {"code": code, "message": error.message}})


def _filtered(error: VendorError) -> Any:
    safe = {"filtered": False, "severity": "safe"}
    found = {
        "hate": safe,
        "self_harm": safe,
        "sexual": safe,
        "violence": {"filtered": True, "severity": "high"},
    }
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
    return {
        "error": {
            "message": error.message,
            "type": None,
            "param": "prompt",
            "code": "content_filter",
            "status": 400,
            "innererror": inner,
        }
    }


def _anthropic(error: VendorError, request_id: str) -> ErrorReply:
    status, kind = _ANTHROPIC.get(error.reason, (400, "invalid_request_error"))
    said = {"type": kind, "message": error.message}
    headers = {"request-id": request_id}
    if status >= 500:
        headers["x-should-retry"] = "true"
    return ErrorReply(status, headers, {"type": "error", "error": said, "request_id": request_id})


def _google(error: VendorError, request_id: str) -> ErrorReply:
    status, _ = google_status(error)
    return ErrorReply(status, {}, google_body(error))


def _aws(error: VendorError, request_id: str) -> ErrorReply:
    status, name = aws_reply(error)
    headers = {"x-amzn-requestid": request_id, "x-amzn-errortype": f"{name}:"}
    return ErrorReply(status, headers, {"message": error.message})


def _xai(error: VendorError, request_id: str) -> ErrorReply:
    status = 400 if error.reason is Reason.UNAUTHORIZED else _STATUS[error.reason]
    codes = {
        Reason.RATE: "Some resource has been exhausted",
        Reason.QUOTA: "Some resource has been exhausted",
        Reason.NO_MODEL: "Some requested entity was not found",
        Reason.FORBIDDEN: "The caller does not have permission to execute the specified operation",
        Reason.SERVER: "Internal error",
        Reason.UNAVAILABLE: "The service is currently unavailable",
        Reason.OVERLOADED: "The service is currently unavailable",
    }
    code = codes.get(error.reason, "Client specified an invalid argument")
    return ErrorReply(status, {"x-request-id": request_id}, {"code": code, "error": error.message})


def _groq(error: VendorError, request_id: str) -> ErrorReply:
    reply = _openai(error, request_id)
    del reply.body["error"]["param"]
    if error.reason is Reason.OVERLOADED:
        reply.body["error"] |= {"type": "internal_server_error", "code": "over_capacity"}
    return reply


def _mistral(error: VendorError, request_id: str) -> ErrorReply:
    headers = {"x-kong-request-id": request_id}
    if error.reason is Reason.UNAUTHORIZED:
        return ErrorReply(401, headers, {"detail": "Unauthorized"})
    if error.reason is Reason.UNKNOWN_FIELD:
        row = {"type": "extra_forbidden", "loc": ["body", error.path], "msg": error.message}
        return ErrorReply(_MISTRAL_UNPROCESSABLE, headers, {"detail": [row]})
    kind = "rate_limited" if error.reason is Reason.RATE else "invalid_request_error"
    body = {"object": "error", "message": error.message, "type": kind, "param": None}
    code = {Reason.NO_MODEL: "1500", Reason.RATE: "1300"}.get(error.reason, "3051")
    status = 400 if error.reason is Reason.NO_MODEL else _STATUS[error.reason]
    return ErrorReply(status, headers, {**body, "code": code})


def _openrouter(error: VendorError, request_id: str) -> ErrorReply:
    status = 400 if error.reason is Reason.NO_MODEL else _STATUS[error.reason]
    body = {"error": {"message": error.message, "code": status}, "user_id": "user_stand_in"}
    return ErrorReply(status, {}, body)


def _snowflake(error: VendorError, request_id: str) -> ErrorReply:
    status = _STATUS[error.reason]
    body = {"message": error.message, "request_id": request_id, "error_code": "390142"}
    return ErrorReply(status, {}, body)


_REPLIES: Final[Mapping[Family, Callable[[VendorError, str], ErrorReply]]] = {
    "openai": _openai,
    "azure": _azure,
    "anthropic": _anthropic,
    "google": _google,
    "aws": _aws,
    "xai": _xai,
    "groq": _groq,
    "mistral": _mistral,
    "openrouter": _openrouter,
    "snowflake": _snowflake,
}
