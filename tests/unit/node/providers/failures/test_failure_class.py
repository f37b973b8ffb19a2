from typing import Any, Final

import pytest

from smg_node.dialects.worker_errors import WorkerError
from smg_node.providers.failures.failure_class import FailureClass
from smg_node.providers.vendor_errors import event_failure
from support.providers.vendor_failures import (
    JSON,
    anthropic_error,
    aws_error,
    failure,
    google_error,
    openai_error,
    quota_violation,
)

C = FailureClass
CASES: Final[list[tuple[int, Any, FailureClass]]] = [
    # OpenAI, and vendors like it
    (400, openai_error("Unknown field", "unknown_parameter"), C.CALLER),
    (
        400,
        openai_error("This model's maximum context length is 8 tokens", "context_length_exceeded"),
        C.TOO_LONG,
    ),
    (404, openai_error("The model `x` does not exist", "model_not_found"), C.MODEL_UNKNOWN),
    (
        403,
        openai_error("Project `proj_x` does not have access to model `y`", "model_not_found"),
        C.MODEL_UNKNOWN,
    ),
    (404, openai_error("Invalid URL (POST /v1/chat)"), C.CALLER),
    (401, openai_error("Incorrect API key provided: sk-ab", "invalid_api_key"), C.NOT_LET_IN),
    (
        403,
        openai_error("Country not supported", "unsupported_country_region_territory"),
        C.NOT_LET_IN,
    ),
    (429, openai_error("Rate limit reached", "rate_limit_exceeded", "tokens"), C.RATE),
    (
        429,
        openai_error("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        C.NO_MONEY,
    ),
    (500, openai_error("The server had an error", None, "server_error"), C.BROKEN),
    (503, openai_error("Overloaded", None, "service_unavailable_error"), C.FULL),
    (
        400,
        openai_error("Your request was rejected by the safety system", "moderation_blocked"),
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
    (400, anthropic_error("invalid_request_error", "max_tokens: field required"), C.CALLER),
    (
        400,
        anthropic_error(
            "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
        ),
        C.TOO_LONG,
    ),
    (
        400,
        anthropic_error(
            "invalid_request_error", "Your credit balance is too low to access the API"
        ),
        C.NO_MONEY,
    ),
    (
        400,
        anthropic_error("invalid_request_error", "Output blocked by content filtering policy"),
        C.CONTENT,
    ),
    (401, anthropic_error("authentication_error", "invalid x-api-key"), C.NOT_LET_IN),
    (402, anthropic_error("billing_error", "pay"), C.NO_MONEY),
    (403, anthropic_error("permission_error", "no"), C.NOT_LET_IN),
    (404, anthropic_error("not_found_error", "model: claude-x"), C.MODEL_UNKNOWN),
    (413, anthropic_error("request_too_large", "Request exceeds the maximum size"), C.CALLER),
    (429, anthropic_error("rate_limit_error", "slow down"), C.RATE),
    (500, anthropic_error("api_error", "Internal server error"), C.BROKEN),
    (504, anthropic_error("timeout_error", "timed out"), C.TIMED_OUT),
    (529, anthropic_error("overloaded_error", "Overloaded"), C.FULL),
    # Google
    (400, google_error(400, "INVALID_ARGUMENT", "contents is required"), C.CALLER),
    (
        400,
        google_error(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"}),
        C.NOT_LET_IN,
    ),
    (400, google_error(400, "FAILED_PRECONDITION", "User location is not supported"), C.NOT_LET_IN),
    (
        403,
        google_error(403, "PERMISSION_DENIED", "This API method requires billing to be enabled"),
        C.NO_MONEY,
    ),
    (
        403,
        google_error(403, "PERMISSION_DENIED", "denied", {"reason": "SERVICE_DISABLED"}),
        C.NOT_LET_IN,
    ),
    (
        400,
        google_error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed",
        ),
        C.TOO_LONG,
    ),
    (
        404,
        google_error(404, "NOT_FOUND", "models/x is not found for API version v1beta"),
        C.MODEL_UNKNOWN,
    ),
    (
        429,
        google_error(
            429,
            "RESOURCE_EXHAUSTED",
            "quota",
            quota_violation("GenerateRequestsPerMinutePerProject"),
        ),
        C.RATE,
    ),
    (
        429,
        google_error(
            429,
            "RESOURCE_EXHAUSTED",
            "quota",
            quota_violation("GenerateRequestsPerDayPerProject-FreeTier"),
        ),
        C.NO_MONEY,
    ),
    (429, [google_error(429, "RESOURCE_EXHAUSTED", "Resource exhausted")], C.RATE),
    (500, google_error(500, "INTERNAL", "An internal error"), C.BROKEN),
    (503, google_error(503, "UNAVAILABLE", "The model is overloaded"), C.FULL),
    (504, google_error(504, "DEADLINE_EXCEEDED", "too slow"), C.TIMED_OUT),
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
    said, headers = aws_error(kind, message)
    assert failure(status, said, headers, kind="bedrock").failure is found
    inside = {"__type": f"com.amazon.coral.service#{kind}", "Message": message}
    assert failure(status, inside, kind="bedrock").failure is found


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
