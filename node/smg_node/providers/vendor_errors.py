"""Vendor errors: which class a vendor's failure is of, what its client is told, and what becomes of the target. Pure.

    class            from                                            target              again
    caller           400, 413, 422, another 4xx                      as it was           no
    too_long         400 in words or codes of a long prompt          as it was           a larger context
    content          a filter's refusal                              as it was           no
    model_unknown    404 of the model, a bad identifier              off until listed    elsewhere
    not_let_in       401, 403, a key that is none                    provider off        another provider
    no_money         402, a quota of the account or of the day       provider off        another provider
    rate             429                                             closed until then   elsewhere, or after the wait
    full             503, 529, not ready                             pressure            elsewhere
    broken           500, 502, a page, a redirect                    failure             elsewhere
    timed_out        408, 504                                        failure             once, elsewhere

A caller's mistake changes nothing for anybody else. With a client's own key the account is its business too.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.worker_errors import WorkerError
from smg_node.providers.failures.failure_class import FailureClass, failure_class
from smg_node.providers.failures.retry_after import retry_after_s, should_retry
from smg_node.providers.failures.vendor_words import VendorWords, scrubbed, vendor_words
from smg_node.providers.rates.limit_headers import reset_s

OFF_MIN_S: Final = 60.0
"""A provider whose account has nothing left is asked again after a minute at the earliest."""
AGAIN_MIN_S: Final = 0.05
"""A client is not told to come back at once: the bucket that lacked something may have filled while that is said."""


class Consequence(Enum):
    """What becomes of the target, its provider, or its key."""

    NONE = "none"
    TARGET_UNLISTED = "target off until its list is read again"
    PROVIDER_OFF = "provider off until its credential or account is good again"
    BUCKET_CLOSED = "bucket closed for the wait"
    PRESSURE = "pressure"
    FAILURE = "failure"


class Retry(Enum):
    """Where the request may be tried again, before any of its answer is out."""

    NOWHERE = "nowhere"
    LARGER_CONTEXT = "a target with more context"
    OTHER_TARGET = "another target"
    OTHER_PROVIDER = "another provider"
    AFTER_WAIT = "another target at once, this one after the wait"
    ONCE_ELSEWHERE = "once, elsewhere"
    WITHOUT_STATE = "once more here, without opaque state"


class VendorFailure(msgspec.Struct, frozen=True):
    """One failure. `error` is what the client is told, `words` the vendor's own, scrubbed, for the journal.

    `wait_s` is what the vendor wants; `refused_field` is a field of the body that this model does not take, for later
    requests to leave out.
    """

    failure: FailureClass
    error: SmgError
    consequence: Consequence
    retry: Retry
    wait_s: float | None = None
    refused_field: str = ""
    code: str = ""
    words: str = ""


_CONSEQUENCES: Final[Mapping[FailureClass, tuple[Consequence, Retry]]] = {
    FailureClass.CALLER: (Consequence.NONE, Retry.NOWHERE),
    FailureClass.TOO_LONG: (Consequence.NONE, Retry.LARGER_CONTEXT),
    FailureClass.CONTENT: (Consequence.NONE, Retry.NOWHERE),
    FailureClass.MODEL_UNKNOWN: (Consequence.TARGET_UNLISTED, Retry.OTHER_TARGET),
    FailureClass.NOT_LET_IN: (Consequence.PROVIDER_OFF, Retry.OTHER_PROVIDER),
    FailureClass.NO_MONEY: (Consequence.PROVIDER_OFF, Retry.OTHER_PROVIDER),
    FailureClass.RATE: (Consequence.BUCKET_CLOSED, Retry.AFTER_WAIT),
    FailureClass.FULL: (Consequence.PRESSURE, Retry.OTHER_TARGET),
    FailureClass.BROKEN: (Consequence.FAILURE, Retry.OTHER_TARGET),
    FailureClass.TIMED_OUT: (Consequence.FAILURE, Retry.ONCE_ELSEWHERE),
}


def vendor_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    kind: str,
    now: float,
    secrets: Collection[str] = (),
    client_key: bool = False,
) -> VendorFailure:
    """Return what an answer with a bad status means; names of `headers` are in lower case.

    `secrets` are keys, tokens and names of the account, which no client sees. `client_key`: the client brought the
    vendor's key itself.
    """
    words = vendor_words(headers, body)
    wait_s = retry_after_s(
        status, headers, now=now, body_s=words.retry_s, reset_s=reset_s(kind, headers, now=now)
    )
    found = _judged(status, words, wait_s, secrets, client_key=client_key)
    told = should_retry(headers)
    if told is False and found.retry in (Retry.AFTER_WAIT, Retry.ONCE_ELSEWHERE):
        # Of its own account the vendor knows best; another one is not its to forbid.
        return msgspec.structs.replace(found, retry=Retry.OTHER_PROVIDER)
    if told and found.retry is Retry.NOWHERE and found.failure is FailureClass.CALLER:
        return msgspec.structs.replace(found, retry=Retry.OTHER_TARGET)
    return found


def event_failure(
    error: WorkerError, *, secrets: Collection[str] = (), client_key: bool = False
) -> VendorFailure:
    """Return what an error inside an answer means: an event or a frame after a good status."""
    code = error.code.rpartition("#")[2].lower()
    words = VendorWords(error.status, (code,) if code else (), error.message, error.param)
    status = error.status or _STATUS_OF_CODE.get(code, 500)
    return _judged(status, words, None, secrets, client_key=client_key)


_STATUS_OF_CODE: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "validationexception": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "accessdeniedexception": 403,
    "not_found_error": 404,
    "resourcenotfoundexception": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "throttlingexception": 429,
    "resource_exhausted": 429,
    "servicequotaexceededexception": 429,
    "modelnotreadyexception": 503,
    "serviceunavailableexception": 503,
    "unavailable": 503,
    "overloaded": 503,
    "timeout_error": 504,
    "modeltimeoutexception": 504,
    "deadline_exceeded": 504,
    "overloaded_error": 529,
}
"""The status that an error without one would have had."""


def _judged(
    status: int,
    words: VendorWords,
    wait_s: float | None,
    secrets: Collection[str],
    *,
    client_key: bool,
) -> VendorFailure:
    failure = failure_class(status, words)
    consequence, retry = _CONSEQUENCES[failure]
    if client_key and failure in _OF_THE_ACCOUNT:
        consequence, retry = Consequence.NONE, Retry.NOWHERE
    if failure is FailureClass.CALLER and _names_state(words):
        retry = Retry.WITHOUT_STATE
    if failure is FailureClass.NO_MONEY:
        wait_s = max(wait_s or 0.0, OFF_MIN_S)
    told = scrubbed(words.message, secrets)
    return VendorFailure(
        failure,
        _client_error(failure, status, words, told, wait_s, client_key=client_key),
        consequence,
        retry,
        wait_s,
        _refused_field(words) if failure is FailureClass.CALLER else "",
        words.codes[0] if words.codes else "",
        told,
    )


_OF_THE_ACCOUNT: Final = (FailureClass.NOT_LET_IN, FailureClass.NO_MONEY, FailureClass.RATE)


def _names_state(words: VendorWords) -> bool:
    """Whether a refusal is of state that another vendor, or an earlier turn, gave: signatures, encrypted thoughts."""
    return words.names("invalid_encrypted_content", "missing_thought_signature") or words.says(
        "thought_signature",
        "thought signature",
        "`signature` in `thinking`",
        "invalid signature",
        "without its required",
        "encrypted content",
        "encrypted_content",
    )


def _refused_field(words: VendorWords) -> str:
    refused = words.names("unsupported_parameter", "unsupported_value")
    return words.param if refused else ""


def _client_error(
    failure: FailureClass,
    status: int,
    words: VendorWords,
    told: str,
    wait_s: float | None,
    *,
    client_key: bool,
) -> SmgError:
    if client_key and failure in (FailureClass.NOT_LET_IN, FailureClass.NO_MONEY):
        kind = ErrorKind.UNAUTHENTICATED if status == 401 else ErrorKind.FORBIDDEN
        return SmgError(
            kind, told or "the vendor does not take this key", code="provider_key_refused"
        )
    if failure in (FailureClass.CALLER, FailureClass.TOO_LONG, FailureClass.CONTENT):
        return _callers_error(failure, status, words, told)
    return class_error(failure, wait_s)


def class_error(failure: FailureClass, wait_s: float | None = None) -> SmgError:
    """Return what clients are told of a failure that is not theirs, and that they may come again after `wait_s`."""
    kind, message, code = _OURS[failure]
    waits = kind in (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED)
    return SmgError(kind, message, code=code, retry_after_s=wait_s if waits else None)


_OURS: Final[Mapping[FailureClass, tuple[ErrorKind, str, str]]] = {
    FailureClass.MODEL_UNKNOWN: (
        ErrorKind.UPSTREAM_FAILED,
        "the provider does not have this model; its operator should look at the route",
        "upstream_model_unknown",
    ),
    FailureClass.NOT_LET_IN: (
        ErrorKind.UPSTREAM_FAILED,
        "the provider does not take this node's credentials; its operator should look at them",
        "upstream_denied",
    ),
    FailureClass.NO_MONEY: (
        ErrorKind.OVERLOADED,
        "the provider's account has no quota left for now; try later",
        "upstream_quota",
    ),
    FailureClass.RATE: (
        ErrorKind.RATE_LIMITED,
        "the provider takes no more requests for now; try again after the time in Retry-After",
        "upstream_rate_limited",
    ),
    FailureClass.FULL: (
        ErrorKind.OVERLOADED,
        "the provider has no room for this model now; try again",
        "upstream_overloaded",
    ),
    FailureClass.BROKEN: (
        ErrorKind.UPSTREAM_FAILED,
        "the provider failed; try again",
        "upstream_error",
    ),
    FailureClass.TIMED_OUT: (
        ErrorKind.UPSTREAM_TIMEOUT,
        "the provider gave no answer in time; it may have been billed",
        "upstream_timeout",
    ),
}


def _callers_error(failure: FailureClass, status: int, words: VendorWords, told: str) -> SmgError:
    codes = {
        FailureClass.TOO_LONG: "context_length_exceeded",
        FailureClass.CONTENT: "content_filter",
    }
    too_large = failure is FailureClass.CALLER and status == 413
    fallback = "the provider refused the request and did not say why"
    code = codes.get(failure) or _known_code(words)
    narrow = status if failure is FailureClass.CALLER and status in _KEPT_STATUSES else None
    return SmgError(
        ErrorKind.TOO_LARGE if too_large else ErrorKind.INVALID_REQUEST,
        told or fallback,
        where=words.param or None,
        code=None if too_large else code,
        status=None if too_large else narrow,
    )


_KEPT_STATUSES: Final = (405, 409, 415, 422)
_KEPT_CODES: Final = frozenset(
    [
        "invalid_value",
        "invalid_type",
        "missing_required_parameter",
        "unknown_parameter",
        "unsupported_parameter",
        "unsupported_value",
        "invalid_image",
        "invalid_image_url",
        "invalid_json",
    ]
)


def _known_code(words: VendorWords) -> str:
    return next((code for code in words.codes if code in _KEPT_CODES), "invalid_value")


def again(why: SmgError, wait_s: float) -> SmgError:
    """Return an error anew, with the time after which it may be tried again, as far as its kind has one."""
    waits = why.kind in (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED)
    return SmgError(
        why.kind,
        why.message,
        code=why.code,
        retry_after_s=min(max(wait_s, AGAIN_MIN_S), OFF_MIN_S) if waits else None,
    )
