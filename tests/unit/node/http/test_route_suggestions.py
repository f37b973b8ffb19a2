"""Near misses of paths are told which route was meant; other paths are not."""

import pytest

from smg_node.core.errors import SmgError
from smg_node.http.route_table import METRICS_ROUTES, ROUTES, Router

ROUTER = Router(ROUTES)


def refusal(method: str, path: str) -> str:
    with pytest.raises(SmgError) as caught:
        ROUTER.find(method, path)
    assert (caught.value.status, caught.value.code) == (404, "unknown_url")
    return caught.value.message


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("POST", "//v1/chat/completions", "POST /v1/chat/completions"),
        ("POST", "/v1//chat/completions", "POST /v1/chat/completions"),
        ("POST", "/v1/chat/completions/", "POST /v1/chat/completions"),
        ("POST", "/chat/completions", "POST /v1/chat/completions"),
        ("POST", "/v1/v1/chat/completions", "POST /v1/chat/completions"),
        ("POST", "/openai/v1/chat/completions", "POST /v1/chat/completions"),
        ("POST", "/V1/Chat/Completions", "POST /v1/chat/completions"),
        ("POST", "/v1/chat/completion", "POST /v1/chat/completions"),
        ("POST", "/v1/embedings", "POST /v1/embeddings"),
        ("GET", "/v1/chat/completion", "POST /v1/chat/completions"),
        ("GET", "/models", "GET /v1/models"),
        ("GET", "/v1/models/", "GET /v1/models"),
        ("HEAD", "/models/org/big", "GET /v1/models/org/big"),
        ("GET", "/responses/resp_1/", "GET /v1/responses/resp_1"),
        ("DELETE", "/response/resp_1", "DELETE /v1/responses/resp_1"),
        ("GET", "/v1/health", "GET /health"),
        ("GET", "/v1/workers", "GET /workers"),
        ("POST", "/worker", "POST /workers"),
        ("POST", "/workers/w-1/drian", "POST /workers/w-1/drain"),
        ("GET", "/cluster/members", "GET /v1/cluster/members"),
        ("GET", "/v1/members", "GET /v1/cluster/members"),
        ("PUT", "/v1/cluster/setting/routing.policy", "PUT /v1/cluster/settings/routing.policy"),
        ("GET", "/opanapi.json", "GET /openapi.json"),
    ],
)
def test_a_near_miss_is_told_the_route(method: str, path: str, meant: str) -> None:
    assert refusal(method, path) == f"there is nothing at {method} {path}; did you mean {meant}?"


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "//",
        "/v2",
        "/wp-login.php",
        "/v1/messages/batches/b/results",
        "/v1/realtime/client_secrets",
        "/v1/audio/transcriptions",
        "/v1/images/generations",
        "/v1/moderations",
        "/v1/files",
        "/v1/batches",
        "/v1/vector_stores",
        "/v1/skills/s/versions",
        "/v1/wasm",
        "/" + "x" * 500,
        "/" + "/".join("abcdefghijklmnopqrstuvwxyz"),
    ],
)
def test_a_path_of_something_else_is_told_nothing_more(path: str) -> None:
    assert refusal("POST", path) == f"there is nothing at POST {path[:200]}"


def test_the_metrics_port_names_its_own_routes_only() -> None:
    router = Router(METRICS_ROUTES)
    for path, hint in (("/metrics/", "; did you mean GET /metrics?"), ("/models", "")):
        with pytest.raises(SmgError) as caught:
            router.find("GET", path)
        assert caught.value.message == f"there is nothing at GET {path}{hint}"
