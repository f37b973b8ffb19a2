"""Envelopes of errors: status, body and headers of each reason, as each vendor has them."""

from typing import Any, get_args

import pytest

from smg_chaos.vendor.errors.aws_envelope import exception_of
from smg_chaos.vendor.errors.envelopes import Family, inband_body, reply_of
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

FAMILIES: tuple[Family, ...] = get_args(Family)
ROWS: list[tuple[Family, Reason, int, dict[str, Any]]] = [
    ("openai", Reason.UNAUTHORIZED, 401, {"code": "invalid_api_key", "type": "invalid_request_error"}),
    ("openai", Reason.NO_MODEL, 404, {"code": "model_not_found", "param": "p"}),
    ("openai", Reason.TOO_LONG, 400, {"code": "context_length_exceeded"}),
    ("openai", Reason.RATE, 429, {"code": "rate_limit_exceeded", "type": "requests", "param": None}),
    ("openai", Reason.QUOTA, 429, {"code": "insufficient_quota", "type": "insufficient_quota"}),
    ("openai", Reason.SERVER, 500, {"type": "server_error"}),
    ("azure", Reason.NO_MODEL, 404, {"code": "DeploymentNotFound"}),
    ("azure", Reason.RATE, 429, {"code": "429"}),
    ("azure", Reason.CONTENT_FILTER, 400, {"code": "content_filter", "status": 400}),
    ("azure", Reason.UNSUPPORTED_VALUE, 400, {"code": "unsupported_value"}),
    ("anthropic", Reason.INVALID, 400, {"type": "invalid_request_error"}),
    ("anthropic", Reason.UNAUTHORIZED, 401, {"type": "authentication_error"}),
    ("anthropic", Reason.NO_MODEL, 404, {"type": "not_found_error"}),
    ("anthropic", Reason.TOO_LARGE, 413, {"type": "request_too_large"}),
    ("anthropic", Reason.RATE, 429, {"type": "rate_limit_error"}),
    ("anthropic", Reason.OVERLOADED, 529, {"type": "overloaded_error"}),
    ("anthropic", Reason.NO_MONEY, 402, {"type": "billing_error"}),
    ("google", Reason.INVALID, 400, {"status": "INVALID_ARGUMENT", "code": 400}),
    ("google", Reason.RATE, 429, {"status": "RESOURCE_EXHAUSTED"}),
    ("google", Reason.UNAVAILABLE, 503, {"status": "UNAVAILABLE"}),
    ("google", Reason.TIMEOUT, 504, {"status": "DEADLINE_EXCEEDED"}),
    ("groq", Reason.OVERLOADED, 503, {"code": "over_capacity"}),
    ("openrouter", Reason.UNAUTHORIZED, 401, {"code": 401}),
]  # fmt: skip


@pytest.mark.parametrize(("family", "reason", "status", "fields"), ROWS)
def test_a_reason_has_its_place_in_the_vendors_envelope(
    family: Family, reason: Reason, status: int, fields: dict[str, Any]
) -> None:
    reply = reply_of(VendorError(reason, "words", path="p"), family, "req_1")
    error = reply.body["error"]
    assert (reply.status, error["message"]) == (status, "words")
    assert error | fields == error


@pytest.mark.parametrize(
    ("reason", "status", "name"),
    [
        (Reason.INVALID, 400, "ValidationException"),
        (Reason.NO_MODEL, 400, "ValidationException"),
        (Reason.UNAUTHORIZED, 403, "UnrecognizedClientException"),
        (Reason.SIGNATURE, 403, "InvalidSignatureException"),
        (Reason.RATE, 429, "ThrottlingException"),
        (Reason.OVERLOADED, 429, "ModelNotReadyException"),
        (Reason.UNAVAILABLE, 503, "ServiceUnavailableException"),
        (Reason.TIMEOUT, 408, "ModelTimeoutException"),
    ],
)
def test_aws_names_the_exception_in_a_header(reason: Reason, status: int, name: str) -> None:
    reply = reply_of(VendorError(reason, "words"), "aws", "req_1")
    assert (reply.status, reply.body) == (status, {"message": "words"})
    assert reply.headers == {"x-amzn-requestid": "req_1", "x-amzn-errortype": f"{name}:"}


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_vendor_has_words_for_every_reason(family: Family, reason: Reason) -> None:
    reply = reply_of(VendorError(reason, "words", retry_after_s=2.0), family, "req_1")
    assert 400 <= reply.status <= 529
    unauthorized = family == "mistral" and reason is Reason.UNAUTHORIZED
    assert unauthorized or "words" in str(reply.body)


def test_how_long_to_wait_is_told_where_each_vendor_tells_it() -> None:
    error = VendorError(Reason.RATE, "slow", retry_after_s=45.837906927, path="tokens")
    assert reply_of(error, "openai", "r").headers == {
        "x-request-id": "r",
        "retry-after-ms": "45838",
        "retry-after": "46",
    }
    assert reply_of(error, "openai", "r").body["error"]["type"] == "tokens"
    assert reply_of(error, "anthropic", "r").headers["retry-after"] == "46"
    google = reply_of(error, "google", "r")
    assert google.headers == {}
    quota, wait = google.body["error"]["details"]
    assert wait == {
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": "45.837906927s",
    }
    assert quota["violations"][0]["quotaId"].endswith("PerMinutePerProjectPerModel")


def test_a_quota_of_the_day_says_so_and_is_not_to_be_tried_again() -> None:
    error = VendorError(Reason.QUOTA, "no money")
    assert reply_of(error, "openai", "r").headers["x-should-retry"] == "false"
    [quota] = reply_of(error, "google", "r").body["error"]["details"]
    assert quota["violations"][0]["quotaId"].endswith("PerDayPerProjectPerModel")


def test_others_have_shapes_of_their_own() -> None:
    error = VendorError(Reason.NO_MODEL, "no such model", path="model")
    assert reply_of(error, "xai", "r").body == {
        "code": "Some requested entity was not found",
        "error": "no such model",
    }
    assert reply_of(error, "mistral", "r").body["type"] == "invalid_request_error"
    assert reply_of(error, "snowflake", "r").body["message"] == "no such model"
    unknown = VendorError(Reason.UNKNOWN_FIELD, "not permitted", path="top_k")
    told = reply_of(unknown, "mistral", "r")
    assert (told.status, told.body["detail"][0]["loc"]) == (422, ["body", "top_k"])


def test_groq_gives_an_error_inside_the_stream_a_status() -> None:
    body = inband_body(VendorError(Reason.INVALID, "tool use failed"), "groq", "r")
    assert body["error"]["status_code"] == 400


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (Reason.RATE, "throttlingException"),
        (Reason.OVERLOADED, "serviceUnavailableException"),
        (Reason.SERVER, "internalServerException"),
        (Reason.INVALID, "validationException"),
        (Reason.TIMEOUT, "modelTimeoutException"),
    ],
)
def test_frames_spell_exceptions_with_a_small_letter(reason: Reason, name: str) -> None:
    assert exception_of(VendorError(reason, "words")) == name
