import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind
from smg_node.providers.failures.vendor_words import scrubbed, vendor_words
from smg_node.providers.vendor_errors import Consequence, Retry, vendor_failure
from support.providers.vendor_failures import (
    JSON,
    NOW,
    anthropic_error,
    failure,
    google_error,
    openai_error,
)


@pytest.mark.parametrize(
    ("said", "status", "kind", "code", "consequence", "retry"),
    [
        (
            openai_error("x"),
            400,
            ErrorKind.INVALID_REQUEST,
            "invalid_value",
            Consequence.NONE,
            Retry.NOWHERE,
        ),
        (
            openai_error("x", "context_length_exceeded"),
            400,
            ErrorKind.INVALID_REQUEST,
            "context_length_exceeded",
            Consequence.NONE,
            Retry.LARGER_CONTEXT,
        ),
        (
            openai_error("x", "content_filter"),
            400,
            ErrorKind.INVALID_REQUEST,
            "content_filter",
            Consequence.NONE,
            Retry.NOWHERE,
        ),
        (
            openai_error("x", "model_not_found"),
            404,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_model_unknown",
            Consequence.TARGET_UNLISTED,
            Retry.OTHER_TARGET,
        ),
        (
            openai_error("x"),
            401,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_denied",
            Consequence.PROVIDER_OFF,
            Retry.OTHER_PROVIDER,
        ),
        (
            openai_error("x", "insufficient_quota"),
            429,
            ErrorKind.OVERLOADED,
            "upstream_quota",
            Consequence.PROVIDER_OFF,
            Retry.OTHER_PROVIDER,
        ),
        (
            openai_error("x"),
            429,
            ErrorKind.RATE_LIMITED,
            "upstream_rate_limited",
            Consequence.BUCKET_CLOSED,
            Retry.AFTER_WAIT,
        ),
        (
            openai_error("x"),
            529,
            ErrorKind.OVERLOADED,
            "upstream_overloaded",
            Consequence.PRESSURE,
            Retry.OTHER_TARGET,
        ),
        (
            openai_error("x"),
            502,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_error",
            Consequence.FAILURE,
            Retry.OTHER_TARGET,
        ),
        (
            openai_error("x"),
            504,
            ErrorKind.UPSTREAM_TIMEOUT,
            "upstream_timeout",
            Consequence.FAILURE,
            Retry.ONCE_ELSEWHERE,
        ),
    ],
)
def test_each_class_has_its_consequence(
    said: Any,
    status: int,
    kind: ErrorKind,
    code: str,
    consequence: Consequence,
    retry: Retry,
) -> None:
    found = failure(status, said)
    assert (found.error.kind, found.error.code) == (kind, code)
    assert (found.consequence, found.retry) == (consequence, retry)


def test_a_callers_mistake_is_told_in_the_vendors_words() -> None:
    said = {
        "error": {
            "message": "Unsupported parameter: 'temperature'",
            "type": "invalid_request_error",
            "param": "temperature",
            "code": "unsupported_parameter",
        }
    }
    found = failure(400, said)
    assert found.error.message == "Unsupported parameter: 'temperature'"
    assert (found.error.where, found.error.code) == ("temperature", "unsupported_parameter")
    assert (found.refused_field, found.code) == ("temperature", "unsupported_parameter")


@pytest.mark.parametrize(
    ("status", "told"), [(400, 400), (404, 400), (409, 409), (413, 413), (415, 415), (422, 422)]
)
def test_a_callers_mistake_keeps_a_status_that_means_something_here(status: int, told: int) -> None:
    assert failure(status, openai_error("x")).error.status == told


def test_a_failure_that_says_nothing_is_told_in_our_words() -> None:
    assert failure(400, b"", {}).error.message == (
        "the provider refused the request and did not say why"
    )


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Function call is missing a thought_signature in functionCall parts",
        "The encrypted content gAAA could not be verified",
    ],
)
def test_a_refused_signature_is_tried_again_without_it(message: str) -> None:
    assert (
        failure(400, anthropic_error("invalid_request_error", message)).retry is Retry.WITHOUT_STATE
    )


@pytest.mark.parametrize(
    ("status", "said", "headers", "wait_s"),
    [
        (429, openai_error("x"), {"retry-after": "2"}, 2.0),
        (
            429,
            google_error(429, "RESOURCE_EXHAUSTED", "x", {"retryDelay": "45.837906927s"}),
            {},
            45.837906927,
        ),
        (
            429,
            openai_error("x"),
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m",
            },
            1.0,
        ),
        (429, openai_error("x"), {}, None),
        (503, openai_error("x"), {"retry-after": "2"}, 2.0),
        (500, openai_error("x"), {"retry-after": "2"}, None),
        (429, openai_error("x", "insufficient_quota"), {"retry-after": "2"}, 60.0),
        (429, openai_error("x", "insufficient_quota"), {"retry-after": "7200"}, 7_200.0),
    ],
)
def test_the_wait_is_what_the_vendor_says(
    status: int, said: Any, headers: dict[str, str], wait_s: float | None
) -> None:
    found = failure(status, said, {**JSON, **headers})
    assert found.wait_s == (None if wait_s is None else pytest.approx(wait_s))
    shown = status in (429, 503)
    assert found.error.retry_after_s == (found.wait_s if shown else None)


@pytest.mark.parametrize(
    ("status", "told", "retry"),
    [
        (429, "false", Retry.OTHER_PROVIDER),
        (429, "true", Retry.AFTER_WAIT),
        (400, "true", Retry.OTHER_TARGET),
        (400, "false", Retry.NOWHERE),
        (500, "false", Retry.OTHER_TARGET),
    ],
)
def test_a_vendors_word_on_trying_again_counts(status: int, told: str, retry: Retry) -> None:
    assert failure(status, openai_error("x"), {**JSON, "x-should-retry": told}).retry is retry


@pytest.mark.parametrize(("status", "kind"), [(401, 401), (403, 403), (402, 403), (429, 429)])
def test_with_a_clients_own_key_its_account_is_its_business(status: int, kind: int) -> None:
    found = failure(status, openai_error("Incorrect key"), client_key=True)
    assert (found.consequence, found.retry) == (Consequence.NONE, Retry.NOWHERE)
    assert found.error.status == kind


SECRETS: Final = [
    "sk-proj-abcdefGHIJ1234",
    "sk-ant-api03-abc_def-123456",
    "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "org-AbCdEf123456",
    "proj_AbCdEf123456",
    "AKIAIOSFODNN7EXAMPLE",
    "arn:aws:iam::123456789012:user/alice",
    "123456789012",
    "svc-1@my-proj.iam.gserviceaccount.com",
    "projects/my-proj-1/",
    "project_number:445566778899",
    "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
    "acme-eu.openai.azure.com",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl",
    "ya29.a0AfH6SMBx_123",
    "xai-AbCdEf123456",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_no_client_sees_what_tells_of_the_account(secret: str, status: int) -> None:
    found = failure(status, openai_error(f"wrong: {secret}, see '{secret}'."))
    core = secret.rstrip("/").removeprefix("projects/").removeprefix("project_number:")
    assert core not in found.error.message
    assert core not in found.words


def test_secrets_that_are_known_are_taken_out_whatever_they_look_like() -> None:
    found = failure(
        400, openai_error("the key tiger of Acme Ltd"), secrets=("tiger", "Acme Ltd", "")
    )
    assert found.error.message == "the key [hidden] of [hidden]"


def test_words_are_cut_to_two_kibibytes() -> None:
    found = failure(400, openai_error("я" * 5_000))
    assert len(found.error.message.encode()) <= 2_048
    assert found.error.message.endswith("…")
    assert scrubbed("a\x00b\nc") == "a b\nc"


@pytest.mark.parametrize("text", ["tool call call_0 has 12 items", "top_p must be in [0, 1]", ""])
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert scrubbed(text) == text


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "code",
                    "status",
                    "message",
                    "details",
                    "violations",
                    "type",
                    "innererror",
                ]
            ),
            inner,
        )
    ),
    max_leaves=10,
)


@given(
    st.binary(max_size=60) | ANY.map(lambda said: json.dumps(said).encode()),
    st.integers(300, 599),
    st.dictionaries(
        st.sampled_from(["content-type", "x-amzn-errortype", "retry-after", "x-should-retry"]),
        st.text(max_size=12),
    ),
)
def test_any_answer_is_a_failure_of_some_class(
    body: bytes, status: int, headers: dict[str, str]
) -> None:
    found = vendor_failure(status, headers, body, kind="openai", now=NOW)
    assert found.error.status >= 400
    assert len(found.error.message.encode()) <= 2_048
    assert all(code == code.lower() for code in vendor_words(headers, body).codes)
