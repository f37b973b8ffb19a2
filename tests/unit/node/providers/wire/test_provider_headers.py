import pytest

from smg_node.providers import hosting
from smg_node.providers.wire.provider_headers import to_client, to_vendor, vendor_request_id

CLIENT = {
    "accept-language": "de",
    "anthropic-beta": "b1,b2",
    "anthropic-version": "2023-06-01",
    "authorization": "Bearer mine",
    "cookie": "a=b",
    "openai-beta": "x=y",
    "openai-organization": "org-1",
    "x-api-key": "mine",
    "x-forwarded-for": "10.0.0.1",
    "x-grok-conv-id": "c1",
    "x-own": "yes",
}


@pytest.mark.parametrize(
    ("kind", "operation", "more", "passes"),
    [
        ("anthropic", hosting.MESSAGES, (), {"anthropic-beta": "b1,b2"}),
        ("openai", hosting.RESPONSES, (), {"openai-beta": "x=y"}),
        ("openai", hosting.EMBEDDINGS, (), {}),
        ("gemini", hosting.GENERATE_CONTENT, ("x-own",), {"x-own": "yes"}),
        ("xai", hosting.CHAT, (), {"openai-beta": "x=y", "x-grok-conv-id": "c1"}),
    ],
)
def test_few_headers_go_to_a_vendor(
    kind: str, operation: str, more: tuple[str, ...], passes: dict[str, str]
) -> None:
    assert to_vendor(CLIENT, kind, operation, more) == {"accept-language": "de", **passes}


@pytest.mark.parametrize("value", ["a\x00b", "я", "x" * 4_097, ""])
def test_a_header_that_no_line_can_hold_stays(value: str) -> None:
    assert to_vendor({"openai-beta": value}, "openai", hosting.CHAT) == {}
    assert to_client({"openai-version": value}) == {}


def test_nothing_of_the_account_goes_to_a_client() -> None:
    kept = {
        "content-type": "text/event-stream",
        "content-encoding": "gzip",
        "openai-version": "2020-10-01",
        "openai-processing-ms": "12",
        "cache-control": "no-cache",
    }
    dropped = [
        "openai-organization",
        "openai-project",
        "anthropic-organization-id",
        "x-ratelimit-limit-requests",
        "anthropic-ratelimit-tokens-reset",
        "retry-after",
        "retry-after-ms",
        "cf-ray",
        "cf-cache-status",
        "x-envoy-upstream-service-time",
        "apim-request-id",
        "x-ms-region",
        "azureml-model-session",
        "server-timing",
        "traceresponse",
        "set-cookie",
        "x-request-id",
        "request-id",
        "x-amzn-requestid",
        "x-amzn-bedrock-invocation-latency",
        "strict-transport-security",
        "alt-svc",
        "server",
        "date",
        "via",
        "connection",
        "transfer-encoding",
        "content-length",
        "location",
        "www-authenticate",
        "x-should-retry",
        "ratelimit",
        "ratelimit-policy",
        "x-groq-region",
        "access-control-allow-origin",
    ]
    assert to_client({**kept, **dict.fromkeys(dropped, "x")}) == kept


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"x-request-id": "req_1", "cf-ray": "2"}, "req_1"),
        ({"request-id": "req_011", "cf-ray": "2"}, "req_011"),
        ({"x-amzn-requestid": "u-1"}, "u-1"),
        ({"x-request-id": "a\nb"}, ""),
        ({}, ""),
    ],
)
def test_the_vendors_request_id_is_found(headers: dict[str, str], found: str) -> None:
    assert vendor_request_id(headers) == found
