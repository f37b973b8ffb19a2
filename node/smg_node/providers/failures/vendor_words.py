"""Vendor words: what the body of a vendor's failure says, whichever dialect it says it in. Pure.

OpenAI, xAI …   {"error": {"message", "type", "code", "param"}}
Azure           the same with "innererror"; {"statusCode", "message"} of its front
Anthropic       {"type": "error", "error": {"type", "message"}}
Google          {"error": {"code", "status", "message", "details": [ErrorInfo, QuotaFailure, RetryInfo …]}}, or a list of it
AWS             {"message"} or {"Message"}, the kind in the header x-amzn-errortype or in "__type"
text, HTML      proxies and content networks
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.dialects.worker_errors import WORDS_MAX_BYTES, refusal_of

_READ_MAX_BYTES: Final = 65_536
"""A failure that says more is cut: nobody reads it."""
_CODES_MAX: Final = 16
_CODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.#-]{0,127}", re.ASCII)
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)
_HIDDEN: Final = "[hidden]"
_PRIVATE: Final = re.compile(
    r"\b(?:org-|proj_|user-|acct_|wrkspc_|req_)[A-Za-z0-9]{6,64}"
    r"|\b(?:sk|pk|rk|xai|gsk|AIza|ya29)[-._][A-Za-z0-9_.*-]{6,256}"
    r"|\bAIza[A-Za-z0-9_-]{20,64}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,20}"
    r"|\barn:aws[a-z-]*:[^\s\"',]{1,512}"
    r"|\b[A-Za-z0-9._-]{1,80}@[A-Za-z0-9._-]{1,80}\.iam\.gserviceaccount\.com"
    r"|\b(?:projects?|consumer)[/ ](?:number:?\s*)?[a-z0-9:_-]{4,64}(?=[/\s.,'\"]|$)"
    r"|\bproject_number:\d{4,20}"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|\b[a-z0-9-]{1,64}\.(?:openai|services\.ai|cognitiveservices)\.azure\.com"
    r"|\beyJ[A-Za-z0-9_-]{10,4096}(?:\.[A-Za-z0-9_-]{1,4096}){0,2}"
    r"|(?<![\d.])\d{12}(?![\d.])"
)
"""Keys, accounts, organizations, projects, subscriptions, requests: an operator's business and no client's."""


class VendorWords(msgspec.Struct, frozen=True):
    """What a failure says. `codes` are all machine-readable words of it in lower case: codes, types, reasons, quotas.

    `status` is 0 where the body names none; `retry_s` is what Google's body says to wait. `page`: it is a web page, so
    no API answered. `message` is not scrubbed.
    """

    status: int = 0
    codes: tuple[str, ...] = ()
    message: str = ""
    param: str = ""
    retry_s: float | None = None
    page: bool = False

    def says(self, *phrases: str) -> bool:
        """Whether any of the phrases, in lower case, is in the message."""
        message = self.message.lower()
        return any(phrase in message for phrase in phrases)

    def names(self, *codes: str) -> bool:
        """Whether any of the codes is among those that it names."""
        return any(code in self.codes for code in codes)


def vendor_words(headers: Mapping[str, str], body: bytes) -> VendorWords:
    """Return what a failure says; empty words if nothing. Never an error; names of `headers` are in lower case."""
    body = body[:_READ_MAX_BYTES]
    codes: list[object] = [headers.get("x-amzn-errortype", "").partition(":")[0]]
    kind = headers.get("content-type", "")
    page = body.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<?xml"))
    told = refusal_of(body, kind or "text/plain")
    said = _decoded(body)
    error = _error_of(said)
    codes += [told.code]
    codes += [error.get(name) for name in ("code", "type", "status", "__type", "reason")]
    codes += _inner_codes(error)
    retry_s = None
    for detail in _details(error):
        codes += _detail_codes(detail)
        retry_s = _retry_s(detail.get("retryDelay")) or retry_s
    message = told.message or _text(error.get("Message")) or _text(error.get("error_description"))
    return VendorWords(
        told.status or _status(error),
        tuple(dict.fromkeys(filter(None, map(_code, codes))))[:_CODES_MAX],
        message,
        told.param,
        retry_s,
        page,
    )


def scrubbed(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text without secrets, keys and accounts, at most 2 KiB of UTF-8."""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = text.replace(secret, _HIDDEN)
    text = "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)
    text = _PRIVATE.sub(_HIDDEN, text)
    raw = text.encode("utf-8", "replace")
    if len(raw) <= WORDS_MAX_BYTES:
        return raw.decode()
    return raw[: WORDS_MAX_BYTES - 3].decode("utf-8", "ignore") + "…"


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _error_of(said: object) -> Mapping[str, Any]:
    """Return the object that tells of the failure; an empty one if none does."""
    if isinstance(said, list) and said:
        said = said[0]
    if not isinstance(said, dict):
        return {}
    error = said.get("error", said)
    if isinstance(error, str):
        return {**said, "code": error}
    return error if isinstance(error, dict) else said


def _inner_codes(error: Mapping[str, Any]) -> Sequence[object]:
    inner = error.get("innererror") or error.get("inner_error")
    filtered = "content_filter" if error.get("content_filter_result") else None
    return [inner.get("code"), filtered] if isinstance(inner, dict) else [filtered]


def _details(error: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    details = error.get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _detail_codes(detail: Mapping[str, Any]) -> Sequence[object]:
    violations = detail.get("violations")
    rows = violations if isinstance(violations, list) else []
    quotas = [row.get("quotaId") for row in rows if isinstance(row, dict)]
    return [detail.get("reason"), *quotas]


def _retry_s(said: object) -> float | None:
    """Return the seconds of a protobuf duration as JSON spells it: `45.837906927s`."""
    found = _SECONDS.fullmatch(said) if isinstance(said, str) else None
    return float(found[1]) if found else None


def _status(error: Mapping[str, Any]) -> int:
    for name in ("statusCode", "status_code", "status", "code"):
        value = error.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return 0


def _code(said: object) -> str:
    """Return a machine-readable word in lower case, without the namespace that AWS puts before it; "" for others."""
    if not isinstance(said, str):
        return ""
    word = said.rpartition("#")[2]
    return word.lower() if _CODE.fullmatch(word) else ""


def _text(said: object) -> str:
    return said if isinstance(said, str) else ""
