import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind
from smg_node.dialects.worker_errors import WorkerError
from smg_node.providers.failures.failure_class import FailureClass
from smg_node.providers.failures.vendor_words import scrubbed, vendor_words
from smg_node.providers.vendor_errors import (
    Consequence,
    Retry,
    VendorFailure,
    event_failure,
    vendor_failure,
)

NOW: Final = 1_700_000_000.0
JSON: Final = {"content-type": "application/json"}


def failure(
    status: int,
    said: Any,
    headers: dict[str, str] | None = None,
    *,
    kind: str = "openai",
    client_key: bool = False,
    secrets: tuple[str, ...] = (),
) -> VendorFailure:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    headers = JSON if headers is None else headers
    return vendor_failure(
        status, headers, body, kind=kind, now=NOW, client_key=client_key, secrets=secrets
    )


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(kind: str, message: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def google(code: int, status: str, message: str, *details: Any) -> Any:
    return {"error": {"code": code, "status": status, "message": message, "details": details}}


def quota(quota_id: str) -> Any:
    violation = {"quotaMetric": "generate_requests", "quotaId": quota_id}
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}


def aws(kind: str, message: str) -> tuple[Any, dict[str, str]]:
    return {"message": message}, {
        "x-amzn-errortype": f"{kind}:http://internal.amazon.com/x",
        **JSON,
    }


C = FailureClass
CASES: Final[list[tuple[int, Any, FailureClass]]] = [
    # OpenAI, and vendors like it
    (400, openai("Unknown field", "unknown_parameter"), C.CALLER),
    (
        400,
        openai("This model's maximum context length is 8 tokens", "context_length_exceeded"),
        C.TOO_LONG,
    ),
    (404, openai("The model `x` does not exist", "model_not_found"), C.MODEL_UNKNOWN),
    (
        403,
        openai("Project `proj_x` does not have access to model `y`", "model_not_found"),
        C.MODEL_UNKNOWN,
    ),
    (404, openai("Invalid URL (POST /v1/chat)"), C.CALLER),
    (401, openai("Incorrect API key provided: sk-ab", "invalid_api_key"), C.NOT_LET_IN),
    (403, openai("Country not supported", "unsupported_country_region_territory"), C.NOT_LET_IN),
    (429, openai("Rate limit reached", "rate_limit_exceeded", "tokens"), C.RATE),
    (
        429,
        openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        C.NO_MONEY,
    ),
    (500, openai("The server had an error", None, "server_error"), C.BROKEN),
    (503, openai("Overloaded", None, "service_unavailable_error"), C.FULL),
    (
        400,
        openai("Your request was rejected by the safety system", "moderation_blocked"),
        C.CONTENT,
    ),
    (402, {"error": {"message": "Insufficient credits", "code": 402}}, C.NO_MONEY),
    (422, {"detail": [{"loc": ["body", "temperature"], "msg": "too hot"}]}, C.CALLER),
    # Azure
    (
        400,
        {
            "error": {
                "message": "filtered",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        C.CONTENT,
    ),
    (
        404,
        {"error": {"code": "DeploymentNotFound", "message": "The API deployment…"}},
        C.MODEL_UNKNOWN,
    ),
    (404, {"error": {"code": "404", "message": "Resource not found"}}, C.CALLER),
    (
        401,
        {"statusCode": 401, "message": "Access denied due to invalid subscription key"},
        C.NOT_LET_IN,
    ),
    (429, {"error": {"code": "429", "message": "Requests have exceeded call rate limit"}}, C.RATE),
    (
        429,
        {"error": {"code": "NoCapacity", "message": "The system is experiencing high demand"}},
        C.FULL,
    ),
    # Anthropic
    (400, anthropic("invalid_request_error", "max_tokens: field required"), C.CALLER),
    (
        400,
        anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        C.TOO_LONG,
    ),
    (
        400,
        anthropic("invalid_request_error", "Your credit balance is too low to access the API"),
        C.NO_MONEY,
    ),
    (
        400,
        anthropic("invalid_request_error", "Output blocked by content filtering policy"),
        C.CONTENT,
    ),
    (401, anthropic("authentication_error", "invalid x-api-key"), C.NOT_LET_IN),
    (402, anthropic("billing_error", "pay"), C.NO_MONEY),
    (403, anthropic("permission_error", "no"), C.NOT_LET_IN),
    (404, anthropic("not_found_error", "model: claude-x"), C.MODEL_UNKNOWN),
    (413, anthropic("request_too_large", "Request exceeds the maximum size"), C.CALLER),
    (429, anthropic("rate_limit_error", "slow down"), C.RATE),
    (500, anthropic("api_error", "Internal server error"), C.BROKEN),
    (504, anthropic("timeout_error", "timed out"), C.TIMED_OUT),
    (529, anthropic("overloaded_error", "Overloaded"), C.FULL),
    # Google
    (400, google(400, "INVALID_ARGUMENT", "contents is required"), C.CALLER),
    (
        400,
        google(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"}),
        C.NOT_LET_IN,
    ),
    (400, google(400, "FAILED_PRECONDITION", "User location is not supported"), C.NOT_LET_IN),
    (
        403,
        google(403, "PERMISSION_DENIED", "This API method requires billing to be enabled"),
        C.NO_MONEY,
    ),
    (403, google(403, "PERMISSION_DENIED", "denied", {"reason": "SERVICE_DISABLED"}), C.NOT_LET_IN),
    (
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed",
        ),
        C.TOO_LONG,
    ),
    (
        404,
        google(404, "NOT_FOUND", "models/x is not found for API version v1beta"),
        C.MODEL_UNKNOWN,
    ),
    (
        429,
        google(429, "RESOURCE_EXHAUSTED", "quota", quota("GenerateRequestsPerMinutePerProject")),
        C.RATE,
    ),
    (
        429,
        google(
            429, "RESOURCE_EXHAUSTED", "quota", quota("GenerateRequestsPerDayPerProject-FreeTier")
        ),
        C.NO_MONEY,
    ),
    (429, [google(429, "RESOURCE_EXHAUSTED", "Resource exhausted")], C.RATE),
    (500, google(500, "INTERNAL", "An internal error"), C.BROKEN),
    (503, google(503, "UNAVAILABLE", "The model is overloaded"), C.FULL),
    (504, google(504, "DEADLINE_EXCEEDED", "too slow"), C.TIMED_OUT),
    # Text and pages
    (502, b"Bad Gateway", C.BROKEN),
    (503, b"<html><head><title>503 Service</title></head></html>", C.FULL),
    (404, b"<!DOCTYPE html><html></html>", C.BROKEN),
    (403, b"<html><title>Attention Required!</title></html>", C.NOT_LET_IN),
    (524, b"error code: 524", C.TIMED_OUT),
    (301, b"", C.BROKEN),
    (418, b"", C.CALLER),
    (408, b"", C.TIMED_OUT),
]


@pytest.mark.parametrize(("status", "said", "found"), CASES)
def test_a_failure_is_of_the_class_that_its_words_say(
    status: int, said: Any, found: FailureClass
) -> None:
    headers = {} if isinstance(said, bytes) else JSON
    assert failure(status, said, headers).failure is found


AWS_CASES: Final = [
    (400, "ValidationException", "messages: at least one message is required", C.CALLER),
    (400, "ValidationException", "The provided model identifier is invalid.", C.MODEL_UNKNOWN),
    (
        400,
        "ValidationException",
        "Invocation of model ID x with on-demand throughput isn’t supported.",
        C.MODEL_UNKNOWN,
    ),
    (400, "ValidationException", "Input is too long for requested model.", C.TOO_LONG),
    (
        404,
        "ResourceNotFoundException",
        "Model use case details have not been submitted",
        C.MODEL_UNKNOWN,
    ),
    (
        403,
        "AccessDeniedException",
        "You don't have access to the model with the specified model ID.",
        C.MODEL_UNKNOWN,
    ),
    (
        403,
        "AccessDeniedException",
        "User: arn:aws:iam::123456789012:user/x is not authorized",
        C.NOT_LET_IN,
    ),
    (
        403,
        "ExpiredTokenException",
        "The security token included in the request is expired",
        C.NOT_LET_IN,
    ),
    (400, "ServiceQuotaExceededException", "quota", C.RATE),
    (429, "ThrottlingException", "Too many requests, please wait before trying again.", C.RATE),
    (
        429,
        "ThrottlingException",
        "Too many tokens per day, please wait before trying again.",
        C.NO_MONEY,
    ),
    (429, "ModelNotReadyException", "Model is not ready for inference", C.FULL),
    (408, "ModelTimeoutException", "The request took too long", C.TIMED_OUT),
    (424, "ModelErrorException", "model failed", C.BROKEN),
    (500, "InternalServerException", "oops", C.BROKEN),
    (503, "ServiceUnavailableException", "try later", C.FULL),
]


@pytest.mark.parametrize(("status", "kind", "message", "found"), AWS_CASES)
def test_aws_says_the_class_in_a_header_or_in_the_body(
    status: int, kind: str, message: str, found: FailureClass
) -> None:
    said, headers = aws(kind, message)
    assert failure(status, said, headers, kind="bedrock").failure is found
    inside = {"__type": f"com.amazon.coral.service#{kind}", "Message": message}
    assert failure(status, inside, kind="bedrock").failure is found


@pytest.mark.parametrize(
    ("said", "status", "kind", "code", "consequence", "retry"),
    [
        (
            openai("x"),
            400,
            ErrorKind.INVALID_REQUEST,
            "invalid_value",
            Consequence.NONE,
            Retry.NOWHERE,
        ),
        (
            openai("x", "context_length_exceeded"),
            400,
            ErrorKind.INVALID_REQUEST,
            "context_length_exceeded",
            Consequence.NONE,
            Retry.LARGER_CONTEXT,
        ),
        (
            openai("x", "content_filter"),
            400,
            ErrorKind.INVALID_REQUEST,
            "content_filter",
            Consequence.NONE,
            Retry.NOWHERE,
        ),
        (
            openai("x", "model_not_found"),
            404,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_model_unknown",
            Consequence.TARGET_UNLISTED,
            Retry.OTHER_TARGET,
        ),
        (
            openai("x"),
            401,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_denied",
            Consequence.PROVIDER_OFF,
            Retry.OTHER_PROVIDER,
        ),
        (
            openai("x", "insufficient_quota"),
            429,
            ErrorKind.OVERLOADED,
            "upstream_quota",
            Consequence.PROVIDER_OFF,
            Retry.OTHER_PROVIDER,
        ),
        (
            openai("x"),
            429,
            ErrorKind.RATE_LIMITED,
            "upstream_rate_limited",
            Consequence.BUCKET_CLOSED,
            Retry.AFTER_WAIT,
        ),
        (
            openai("x"),
            529,
            ErrorKind.OVERLOADED,
            "upstream_overloaded",
            Consequence.PRESSURE,
            Retry.OTHER_TARGET,
        ),
        (
            openai("x"),
            502,
            ErrorKind.UPSTREAM_FAILED,
            "upstream_error",
            Consequence.FAILURE,
            Retry.OTHER_TARGET,
        ),
        (
            openai("x"),
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
    assert failure(status, openai("x")).error.status == told


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
    assert failure(400, anthropic("invalid_request_error", message)).retry is Retry.WITHOUT_STATE


@pytest.mark.parametrize(
    ("status", "said", "headers", "wait_s"),
    [
        (429, openai("x"), {"retry-after": "2"}, 2.0),
        (
            429,
            google(429, "RESOURCE_EXHAUSTED", "x", {"retryDelay": "45.837906927s"}),
            {},
            45.837906927,
        ),
        (
            429,
            openai("x"),
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m",
            },
            1.0,
        ),
        (429, openai("x"), {}, None),
        (503, openai("x"), {"retry-after": "2"}, 2.0),
        (500, openai("x"), {"retry-after": "2"}, None),
        (429, openai("x", "insufficient_quota"), {"retry-after": "2"}, 60.0),
        (429, openai("x", "insufficient_quota"), {"retry-after": "7200"}, 7_200.0),
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
    assert failure(status, openai("x"), {**JSON, "x-should-retry": told}).retry is retry


@pytest.mark.parametrize(("status", "kind"), [(401, 401), (403, 403), (402, 403), (429, 429)])
def test_with_a_clients_own_key_its_account_is_its_business(status: int, kind: int) -> None:
    found = failure(status, openai("Incorrect key"), client_key=True)
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
    found = failure(status, openai(f"wrong: {secret}, see '{secret}'."))
    core = secret.rstrip("/").removeprefix("projects/").removeprefix("project_number:")
    assert core not in found.error.message
    assert core not in found.words


def test_secrets_that_are_known_are_taken_out_whatever_they_look_like() -> None:
    found = failure(400, openai("the key tiger of Acme Ltd"), secrets=("tiger", "Acme Ltd", ""))
    assert found.error.message == "the key [hidden] of [hidden]"


def test_words_are_cut_to_two_kibibytes() -> None:
    found = failure(400, openai("я" * 5_000))
    assert len(found.error.message.encode()) <= 2_048
    assert found.error.message.endswith("…")
    assert scrubbed("a\x00b\nc") == "a b\nc"


@pytest.mark.parametrize("text", ["tool call call_0 has 12 items", "top_p must be in [0, 1]", ""])
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert scrubbed(text) == text


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (WorkerError(0, "Overloaded", "overloaded_error"), C.FULL),
        (WorkerError(0, "slow", "throttlingException"), C.RATE),
        (WorkerError(0, "slow", "modelStreamErrorException"), C.BROKEN),
        (WorkerError(0, "bad", "validationException"), C.CALLER),
        (WorkerError(400, "tool call failed", "tool_use_failed", "tools[0]"), C.CALLER),
        (WorkerError(0, "prompt is too long", "invalid_request_error"), C.TOO_LONG),
        (WorkerError(0, "", ""), C.BROKEN),
        (WorkerError(429, "", "RESOURCE_EXHAUSTED"), C.RATE),
    ],
)
def test_an_error_inside_an_answer_has_a_class_too(error: WorkerError, found: FailureClass) -> None:
    assert event_failure(error).failure is found


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
