import pytest

from smg_node.core.errors import SmgError
from smg_node.providers import hosting
from smg_node.providers.hosting import HOSTINGS
from smg_node.providers.wire.provider_url import Site, provider_url

CLAUDE = "claude-sonnet-5@20260101"
AWS_MODEL = "eu.anthropic.claude-sonnet-5-v1:0"
ARN = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/ab12"
GOOGLE = Site(project="p-1", location="europe-west4")


@pytest.mark.parametrize(
    ("kind", "site", "operation", "model", "streamed", "url"),
    [
        ("openai", Site(), hosting.CHAT, "m", True, "https://api.openai.com/v1/chat/completions"),
        (
            "openai",
            Site(region="eu"),
            hosting.RESPONSES,
            "m",
            False,
            "https://eu.api.openai.com/v1/responses",
        ),
        (
            "openai",
            Site(base="http://127.0.0.1:8080/a/b/"),
            hosting.EMBEDDINGS,
            "m",
            False,
            "http://127.0.0.1:8080/a/b/embeddings",
        ),
        (
            "anthropic",
            Site(),
            hosting.MESSAGES,
            "m",
            True,
            "https://api.anthropic.com/v1/messages",
        ),
        (
            "anthropic",
            Site(),
            hosting.COUNT_MESSAGES,
            "m",
            False,
            "https://api.anthropic.com/v1/messages/count_tokens",
        ),
        (
            "gemini",
            Site(),
            hosting.GENERATE_CONTENT,
            "gemini-3-pro",
            False,
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
        ),
        (
            "gemini",
            Site(api_version="v1"),
            hosting.GENERATE_CONTENT,
            "tunedModels/my 1",
            True,
            "https://generativelanguage.googleapis.com/v1/tunedModels/my%201"
            ":streamGenerateContent?alt=sse",
        ),
        (
            "gemini",
            Site(),
            hosting.COUNT_CONTENT,
            "models/g",
            False,
            "https://generativelanguage.googleapis.com/v1beta/models/g:countTokens",
        ),
        (
            "gemini",
            Site(),
            hosting.INTERACTIONS,
            "g",
            True,
            "https://generativelanguage.googleapis.com/v1beta/interactions",
        ),
        (
            "vertex",
            GOOGLE,
            hosting.GENERATE_CONTENT,
            "gemini-3-pro",
            True,
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4"
            "/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "vertex",
            Site(project="p-1", location="eu"),
            hosting.GENERATE_CONTENT,
            "meta/llama-5",
            False,
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu"
            "/publishers/meta/models/llama-5:generateContent",
        ),
        (
            "vertex",
            Site(project="p-1", location="global"),
            hosting.GENERATE_CONTENT,
            "projects/9/locations/us-central1/endpoints/7",
            False,
            "https://aiplatform.googleapis.com/v1/projects/9/locations/us-central1/endpoints/7"
            ":generateContent",
        ),
        (
            "vertex_anthropic",
            Site(project="p-1", location="us"),
            hosting.MESSAGES,
            CLAUDE,
            True,
            "https://aiplatform.us.rep.googleapis.com/v1/projects/p-1/locations/us/publishers"
            "/anthropic/models/claude-sonnet-5%4020260101:streamRawPredict",
        ),
        (
            "vertex_anthropic",
            Site(project="p-1", location="global"),
            hosting.COUNT_MESSAGES,
            CLAUDE,
            False,
            "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers"
            "/anthropic/models/count-tokens:rawPredict",
        ),
        (
            "bedrock",
            Site(region="eu-central-1"),
            hosting.CONVERSE,
            AWS_MODEL,
            True,
            "https://bedrock-runtime.eu-central-1.amazonaws.com"
            "/model/eu.anthropic.claude-sonnet-5-v1%3A0/converse-stream",
        ),
        (
            "bedrock_invoke",
            Site(region="eu-west-1"),
            hosting.MESSAGES,
            ARN,
            False,
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1"
            "%3A123456789012%3Aapplication-inference-profile%2Fab12/invoke",
        ),
        (
            "bedrock_invoke",
            Site(region="us-east-1"),
            hosting.COUNT_MESSAGES,
            "m",
            False,
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/count-tokens",
        ),
        (
            "mantle",
            Site(region="us-east-2"),
            hosting.MESSAGES,
            "m",
            True,
            "https://bedrock-mantle.us-east-2.api.aws/anthropic/v1/messages",
        ),
        (
            "mantle",
            Site(region="us-east-2"),
            hosting.RESPONSES,
            "m",
            True,
            "https://bedrock-mantle.us-east-2.api.aws/openai/v1/responses",
        ),
        (
            "azure",
            Site(resource="acme"),
            hosting.CHAT,
            "dep",
            False,
            "https://acme.openai.azure.com/openai/v1/chat/completions",
        ),
        (
            "azure",
            Site(resource="acme", api_version="preview"),
            hosting.RESPONSES,
            "dep",
            False,
            "https://acme.openai.azure.com/openai/v1/responses?api-version=preview",
        ),
        (
            "azure_dated",
            Site(resource="acme", api_version="2025-03-01-preview"),
            hosting.CHAT,
            "my dep",
            True,
            "https://acme.openai.azure.com/openai/deployments/my%20dep/chat/completions"
            "?api-version=2025-03-01-preview",
        ),
        (
            "azure_dated",
            Site(resource="acme", api_version="2025-03-01-preview"),
            hosting.RESPONSES,
            "dep",
            True,
            "https://acme.openai.azure.com/openai/responses?api-version=2025-03-01-preview",
        ),
        (
            "foundry",
            Site(resource="acme"),
            hosting.MESSAGES,
            "m",
            True,
            "https://acme.services.ai.azure.com/anthropic/v1/messages",
        ),
        (
            "claude_aws",
            Site(region="us-west-2", workspace="w"),
            hosting.MESSAGES,
            "m",
            True,
            "https://aws-external-anthropic.us-west-2.api.aws/v1/messages",
        ),
        (
            "claude_gcp",
            Site(project="p-1", workspace="w-2"),
            hosting.MESSAGES,
            "m",
            True,
            "https://claude.googleapis.com/v1/projects/p-1/locations/global/workspaces/w-2/invoke"
            "/v1/messages",
        ),
        ("xai", Site(), hosting.RESPONSES, "grok", True, "https://api.x.ai/v1/responses"),
        (
            "openai_like",
            Site(base="https://api.z.ai/api/paas/v4"),
            hosting.CHAT,
            "glm",
            True,
            "https://api.z.ai/api/paas/v4/chat/completions",
        ),
    ],
)
def test_a_call_goes_where_the_vendor_is(
    kind: str, site: Site, operation: str, model: str, streamed: bool, url: str
) -> None:
    row = HOSTINGS[kind]
    assert str(provider_url(row, site, row.routes[operation], model, streamed=streamed)) == url


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("bedrock", ""),
        ("bedrock", "."),
        ("azure_dated", ".."),
        ("bedrock", "m" * 2_049),
        ("gemini", "models/../../secret"),
        ("gemini", "a/b"),
        ("vertex", "a//b"),
    ],
)
def test_what_no_path_can_hold_is_refused(kind: str, model: str) -> None:
    row = HOSTINGS[kind]
    route = next(iter(row.routes.values()))
    if kind == "azure_dated":
        route = row.routes[hosting.CHAT]
    with pytest.raises(SmgError) as caught:
        provider_url(row, GOOGLE, route, model, streamed=False)
    assert (caught.value.code, caught.value.where) == ("model_not_found", "model")


def test_the_parts_of_an_address_are_what_goes_on_the_wire() -> None:
    row = HOSTINGS["gemini"]
    url = provider_url(
        row,
        Site(base="http://[::1]:99/x"),
        row.routes[hosting.GENERATE_CONTENT],
        "g",
        streamed=True,
    )
    assert (url.origin, url.host) == ("http://[::1]:99", "[::1]:99")
    assert url.target == "/x/v1beta/models/g:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    ("kind", "dialects"),
    [
        ("openai", ["responses", "chat"]),
        ("anthropic", ["messages"]),
        ("gemini", ["generate_content"]),
        ("bedrock", ["converse"]),
        ("mantle", ["responses", "messages", "chat"]),
        ("xai", ["responses", "chat"]),
    ],
)
def test_a_hosting_prefers_the_dialect_that_says_most(kind: str, dialects: list[str]) -> None:
    assert HOSTINGS[kind].dialects == dialects


def test_every_hosting_has_the_order_of_the_table() -> None:
    assert list(HOSTINGS) == [
        "openai",
        "anthropic",
        "gemini",
        "vertex",
        "vertex_anthropic",
        "bedrock",
        "bedrock_invoke",
        "mantle",
        "azure",
        "azure_dated",
        "foundry",
        "claude_aws",
        "claude_gcp",
        "xai",
        "openai_like",
    ]
    for row in HOSTINGS.values():
        order = [name for name in hosting.GENERATING if name in row.routes]
        assert row.dialects == order
