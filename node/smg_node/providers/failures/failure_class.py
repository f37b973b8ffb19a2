"""Failure class: the kind of a vendor's failure, by its codes and words, else by its status. Pure.

A status alone misleads: Anthropic says with 400 that there is no credit left, Google with 400 that a key is none, OpenAI
with 429 that an account is empty, Bedrock with 400 that it has no such model.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from smg_node.providers.failures.vendor_words import VendorWords


class FailureClass(Enum):
    """Classes of failures by what is to be done."""

    CALLER = "caller"
    TOO_LONG = "too_long"
    CONTENT = "content"
    MODEL_UNKNOWN = "model_unknown"
    NOT_LET_IN = "not_let_in"
    NO_MONEY = "no_money"
    RATE = "rate"
    FULL = "full"
    BROKEN = "broken"
    TIMED_OUT = "timed_out"


def failure_class(status: int, words: VendorWords) -> FailureClass:
    """Return the class of a failure: by its codes and words where they say more than its status."""
    if words.page and status < 500 and status not in (401, 402, 403, 429):
        return FailureClass.BROKEN
    for holds, failure in _SIGNS:
        if holds(status, words):
            return failure
    return _BY_STATUS.get(status) or (
        FailureClass.CALLER if 400 <= status < 500 else FailureClass.BROKEN
    )


_BY_STATUS: Final[Mapping[int, FailureClass]] = {
    401: FailureClass.NOT_LET_IN,
    402: FailureClass.NO_MONEY,
    403: FailureClass.NOT_LET_IN,
    407: FailureClass.BROKEN,
    408: FailureClass.TIMED_OUT,
    424: FailureClass.BROKEN,
    425: FailureClass.FULL,
    429: FailureClass.RATE,
    503: FailureClass.FULL,
    504: FailureClass.TIMED_OUT,
    524: FailureClass.TIMED_OUT,
    529: FailureClass.FULL,
}


def _no_money(status: int, words: VendorWords) -> bool:
    if words.names("insufficient_quota", "billing_error", "billing_hard_limit_reached"):
        return True
    if status == 429:
        per_day = any("perday" in code for code in words.codes)
        return per_day or words.says("tokens per day", "requests per day", "per day, please wait")
    return status in (400, 403) and words.says(
        "credit balance is too low",
        "billing to be enabled",
        "enable billing",
        "exceeded your current quota",
    )


def _not_let_in(status: int, words: VendorWords) -> bool:
    return status in (400, 401, 403, 404) and (
        words.names(*_BAD_KEYS)
        or words.says("api key not valid", "api key expired", "user location")
    )


_BAD_KEYS: Final = (
    "api_key_invalid",
    "api_key_service_blocked",
    "invalid_api_key",
    "expiredtokenexception",
    "unrecognizedclientexception",
    "invalidsignatureexception",
    "incompletesignatureexception",
    "missingauthenticationtokenexception",
    "unauthenticated",
    "authentication_error",
    "service_disabled",
)


def _model_unknown(status: int, words: VendorWords) -> bool:
    if words.names("model_not_found", "deploymentnotfound", "model_not_available"):
        return True
    if status == 404:
        return words.names("not_found", "not_found_error", "resourcenotfoundexception") or (
            words.says("model")
            and words.says("not found", "does not exist", "not exist", "no such")
        )
    if status == 400:
        return words.says(
            "model identifier is invalid",
            "throughput isn’t supported",
            "throughput isn't supported",
        )
    return status == 403 and words.says(
        "access to the model", "access to model", "have access to this model"
    )


def _too_long(status: int, words: VendorWords) -> bool:
    if words.names("context_length_exceeded", "string_above_max_length"):
        return True
    return status in (400, 413, 422) and words.says(
        "prompt is too long",
        "input is too long",
        "maximum context length",
        "context window",
        "exceeds the maximum number of tokens",
        "too many input tokens",
        "exceeds the model's context",
    )


def _content(status: int, words: VendorWords) -> bool:
    return status in (400, 403, 422) and (
        words.names(
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "moderation_blocked",
            "cyber_policy",
        )
        or words.says("content filtering policy", "blocked by the content filter")
    )


def _rate(status: int, words: VendorWords) -> bool:
    return status in (400, 429) and words.names(
        "servicequotaexceededexception", "throttlingexception"
    )


def _full(status: int, words: VendorWords) -> bool:
    return words.names(
        "modelnotreadyexception", "overloaded_error", "serviceunavailableexception"
    ) or (status == 429 and words.names("engine_overloaded", "no_capacity", "nocapacity"))


def _timed_out(status: int, words: VendorWords) -> bool:
    return words.names("modeltimeoutexception", "deadline_exceeded")


_SIGNS: Final[Sequence[tuple[Callable[[int, VendorWords], bool], FailureClass]]] = (
    (_no_money, FailureClass.NO_MONEY),
    (_full, FailureClass.FULL),
    (_rate, FailureClass.RATE),
    (_timed_out, FailureClass.TIMED_OUT),
    (_too_long, FailureClass.TOO_LONG),
    (_content, FailureClass.CONTENT),
    (_model_unknown, FailureClass.MODEL_UNKNOWN),
    (_not_let_in, FailureClass.NOT_LET_IN),
)
"""What codes and words say, the surest first."""
