import json
import re

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Fail
from smg_node.http.ports.node import Health
from support.http.http_node import chat, hello, node, silence
from support.http.raw_http import ask, connect

ID = re.compile(r"req_[0-9a-f]{32}")


async def test_an_answer_carries_the_same_id_under_both_names_and_who_gave_it() -> None:
    async with node() as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat())
    headers = response.headers
    assert response.status == 200
    assert response.json()["choices"][0]["message"]["content"] == "Hello world"
    assert ID.fullmatch(headers["x-request-id"])
    assert headers["request-id"] == headers["x-request-id"]
    assert headers["x-smg-node"] == "node-a"
    assert headers["x-smg-routed-worker-id"] == "w-1"
    assert headers["x-smg-attempts"] == "1"
    assert headers["openai-version"] == "2020-10-01"
    assert int(headers["openai-processing-ms"]) >= 0


async def test_routing_headers_can_be_switched_off() -> None:
    async with node(expose_routing_headers=False) as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(stream=True))
    assert not {"x-smg-node", "x-smg-routed-worker-id", "x-smg-attempts"} & set(response.headers)
    assert "openai-version" in response.headers


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"x-request-id": "my-id.1_2"}, "my-id.1_2"),
        ({"request-id": "last"}, "last"),
        ({"x-correlation-id": "second", "request-id": "last"}, "second"),
        ({"x-request-id": "not good!"}, None),
        ({"x-request-id": "a" * 129}, None),
        ({"x-request-id": "", "request-id": "other"}, None),
    ],
)
async def test_a_clients_own_id_is_kept_if_it_is_harmless(
    sent: dict[str, str], kept: str | None
) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(), sent)
        (run,) = served.generations.runs
    given = response.headers["x-request-id"]
    assert given == kept if kept else ID.fullmatch(given)
    assert run.context.request_id == given
    assert run.context.upstream_headers["x-request-id"] == given


async def test_hints_and_trace_context_reach_the_run_and_credentials_do_not() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = {
        "x-smg-target-worker": "w-9",
        "x-smg-routing-key": "user-5",
        "traceparent": parent,
        "tracestate": "a=1",
        "authorization": "Bearer sk-verysecretverysecret",
        "cookie": "c=1",
    }
    async with node() as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(), sent)
        (run,) = served.generations.runs
        log = b"".join(served.access.lines)
    assert run.context.target_worker == "w-9"
    assert run.request.routing_key == "user-5"
    upstream = run.context.upstream_headers
    assert upstream == {
        "traceparent": parent,
        "tracestate": "a=1",
        "x-request-id": response.headers["x-request-id"],
    }
    assert b"secret" not in log
    assert b"0af7651916cd43dd8448eb211c80319c" in log


async def test_ignored_parameters_are_named_and_counted() -> None:
    async with node() as served:
        body = {**chat(foo_bar=1), "évil\r\nx: y": 2}
        response = await ask(served.port, "POST", "/v1/chat/completions", body)
        counted = served.sample("smg_node_ignored_parameters_total", parameter="foo_bar")
    assert response.status == 200
    assert "foo_bar" in response.headers["x-smg-ignored-params"]
    assert "x" not in response.headers
    assert counted == 1


async def test_a_failure_before_any_byte_has_its_own_status_whether_streamed_or_not() -> None:
    async def fail(run):  # type: ignore[no-untyped-def] # a script
        yield [Fail(SmgError(ErrorKind.OVERLOADED, "busy", code="no_worker_available"))]

    async with node(fail) as served:
        for stream in (False, True):
            response = await ask(served.port, "POST", "/v1/chat/completions", chat(stream))
            assert response.status == 503
            assert response.error()["code"] == "no_worker_available"
            assert response.headers["x-smg-error-code"] == "no_worker_available"
            assert response.headers["retry-after"] == "1"
            assert response.headers["x-smg-attempts"] == "1"


async def test_a_mistake_of_ours_is_a_500_that_says_nothing_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(run):  # type: ignore[no-untyped-def] # a script
        raise ZeroDivisionError("the secret cause")
        yield

    async with node(broken) as served:
        for stream in (False, True):
            caplog.clear()
            response = await ask(served.port, "POST", "/v1/chat/completions", chat(stream))
            assert response.status == 500
            assert response.error()["code"] == "internal_error"
            assert b"secret cause" not in response.body
            assert len(caplog.records) == 1
        assert (await ask(served.port, "GET", "/liveness")).status == 200


@pytest.mark.parametrize("path", ["/nope", "/v1/chat/completions/x", "/v1/images/generations"])
async def test_an_unknown_path_is_told_so_in_the_envelope(path: str) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", path, chat())
    assert response.status == 404
    assert response.error() == {
        "message": f"there is nothing at POST {path}",
        "type": "invalid_request_error",
        "param": None,
        "code": "unknown_url",
    }


async def test_unknown_paths_and_methods_cannot_invent_metrics() -> None:
    async with node() as served:
        for method in ("PURGE", "LOCK", "PROPFIND", "MKCOL", "REPORT"):
            await ask(served.port, method, f"/path/{method}")
        page = served.meters.exposition("")[0].decode()
    lines = [line for line in page.splitlines() if line.startswith("smg_node_http_requests_total")]
    assert lines == [
        'smg_node_http_requests_total{method="other",route="unknown",status="404"} 5.0'
    ]


async def test_a_wrong_method_is_told_the_right_one() -> None:
    async with node() as served:
        response = await ask(served.port, "GET", "/v1/chat/completions")
    assert response.status == 405
    assert response.headers["allow"] == "POST, OPTIONS"
    assert response.error()["code"] == "method_not_allowed"


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    async with node() as served, connect(served.port) as client:
        for path in ("/", "/health"):
            await client.send("GET", path)
            got = await client.response()
            await client.send("HEAD", path)
            head = await client.response(bodiless=True)
            assert head.status == got.status == 200
            assert head.headers["content-length"] == str(len(got.body))


async def test_requests_follow_each_other_on_one_connection() -> None:
    async with node() as served, connect(served.port) as client:
        for _ in range(3):
            await client.send("POST", "/v1/chat/completions", json.dumps(chat(True)).encode())
            assert (await client.response()).body.endswith(b"data: [DONE]\n\n")
            await client.send("GET", "/health")
            assert (await client.response()).status == 200


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with node() as served, connect(served.port) as client:
        for path in ("/liveness", "/nope", "/version"):
            await client.send("GET", path)
        assert [(await client.response()).status for _ in range(3)] == [200, 404, 200]


async def test_models_and_their_aliases_are_listed_and_shown() -> None:
    async with node() as served:
        listed = (await ask(served.port, "GET", "/v1/models")).json()
        alias = (await ask(served.port, "GET", "/v1/models/alias")).json()
        big = (await ask(served.port, "GET", "/v1/models/org/big-model")).json()
        missing = await ask(served.port, "GET", "/v1/models/none")
    assert [row["id"] for row in listed["data"]] == ["m", "alias", "org/big-model"]
    assert listed["object"] == "list"
    assert alias["x_smg"]["alias_of"] == "m"
    assert (big["id"], big["created"], big["owned_by"]) == ("org/big-model", 8, "acme")
    assert big["x_smg"]["parsers"]["tools"] == {
        "name": "hermes",
        "options": [],
        "source": "worker",
        "evidence": "qwen",
    }
    assert "parsers" not in alias["x_smg"]
    assert missing.status == 404
    assert missing.error()["code"] == "model_not_found"


async def test_the_model_card_needs_a_name_when_there_are_several() -> None:
    async with node() as served:
        assert (await ask(served.port, "GET", "/get_model_info")).error()["param"] == "model"
        card = (await ask(served.port, "GET", "/model_info?model=alias")).json()
    assert (card["model_path"], card["is_generation"]) == ("m", True)


async def test_tokens_go_both_ways() -> None:
    async with node() as served:
        one = await ask(served.port, "POST", "/v1/tokenize", {"model": "m", "prompt": "ab"})
        many = await ask(served.port, "POST", "/tokenize", {"model": "m", "prompt": ["ab", "c"]})
        back = await ask(served.port, "POST", "/v1/detokenize", {"model": "m", "tokens": [97, 98]})
        wrong = await ask(served.port, "POST", "/detokenize", {"model": "m", "tokens": "ab"})
    assert one.json() == {"tokens": [97, 98], "count": 2, "char_count": 2}
    assert many.json()["tokens"] == [[97, 98], [99]]
    assert back.json() == {"text": "ab"}
    assert (wrong.status, wrong.error()["param"]) == (400, "tokens")


async def test_probes_tell_what_health_and_readiness_are() -> None:
    async with node() as served:
        assert (await ask(served.port, "GET", "/readiness")).json() == {
            "status": "ready",
            "healthy_workers": 1,
            "total_workers": 2,
            "reasons": [],
        }
        served.health.state = Health(True, False, False, 0, 2, ("no worker is ready",))
        ready = await ask(served.port, "GET", "/readiness")
        health = await ask(served.port, "GET", "/health")
        assert (await ask(served.port, "GET", "/liveness")).status == 200
    assert ready.status == 503
    assert ready.json()["status"] == "not ready"
    assert ready.json()["reasons"] == ["no worker is ready"]
    assert health.status == 503


async def test_health_generate_asks_every_model_once_and_remembers_for_a_while() -> None:
    async with node(hello) as served:
        first = await ask(served.port, "GET", "/health_generate")
        second = await ask(served.port, "GET", "/health_generate")
        runs = served.generations.runs
    assert first.json() == {"healthy": True, "models": {"m": "ok", "org/big-model": "ok"}}
    assert second.json() == first.json()
    assert sorted(run.request.model for run in runs) == ["m", "org/big-model"]
    assert all(run.request.sampling.max_tokens == 1 for run in runs)


async def test_health_generate_is_unwell_when_a_model_fails() -> None:
    async def picky(run):  # type: ignore[no-untyped-def] # a script
        if run.request.model == "m":
            yield [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))]
            return
        async for batch in hello(run):
            yield batch

    async with node(picky) as served:
        response = await ask(served.port, "GET", "/health_generate")
    assert response.status == 503
    assert response.json()["models"] == {"m": "the engine died", "org/big-model": "ok"}


async def test_the_node_describes_itself() -> None:
    async with node() as served:
        version = (await ask(served.port, "GET", "/version")).json()
        card = (await ask(served.port, "GET", "/get_server_info")).json()
        spec = (await ask(served.port, "GET", "/openapi.json")).json()
    assert (version["name"], version["version"], version["commit"]) == ("smg-node", "1.2.3", "abc")
    assert card == {"node": "node-a", "version": "1.2.3", "settings": {"name": "node-a"}}
    assert "/v1/chat/completions" in spec["paths"]


async def test_metrics_are_served_on_both_ports_and_agree_with_what_happened() -> None:
    async with node() as served:
        await ask(served.port, "POST", "/v1/chat/completions", chat())
        address = served.server.metrics_address
        assert address is not None
        own = await ask(address.port, "GET", "/metrics")
        main = await ask(
            served.port, "GET", "/metrics", headers={"accept": "application/openmetrics-text"}
        )
        assert (await ask(address.port, "GET", "/workers")).status == 404
    row = (
        'smg_node_http_requests_total{method="POST",route="/v1/chat/completions",status="200"} 1.0'
    )
    for response in (own, main):
        assert response.status == 200
        assert row in response.body.decode()
    assert own.headers["content-type"].startswith("text/plain")
    assert main.headers["content-type"].startswith("application/openmetrics-text")


async def test_one_line_per_request_says_what_became_of_it() -> None:
    async with node() as served:
        await ask(served.port, "POST", "/v1/chat/completions?key=sk-secret", chat())
        await ask(served.port, "GET", "/nope")
        lines = [json.loads(line) for line in served.access.lines]
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/v1/chat/completions", 200),
        ("/nope", 404),
    ]
    assert lines[0]["model"] == "m"
    assert lines[0]["worker"] == "w-1"
    assert lines[0]["peer"] == "127.0.0.1"
    assert lines[0]["bytes"] > 200
    assert lines[1]["error"] == "unknown_url"
    assert "secret" not in str(lines)


async def test_a_page_of_an_allowed_origin_may_ask_for_data_only() -> None:
    origin = {"origin": "https://a.example"}
    asking = {**origin, "access-control-request-method": "POST"}
    async with node(cors_allowed_origins=("https://a.example",)) as served:
        preflight = await ask(served.port, "OPTIONS", "/v1/chat/completions", b"", asking)
        answer = await ask(served.port, "POST", "/v1/chat/completions", chat(), origin)
        failure = await ask(served.port, "POST", "/v1/chat/completions", b"{", origin)
        admin = await ask(served.port, "OPTIONS", "/workers", b"", asking)
    assert preflight.status == 204
    assert preflight.headers["access-control-max-age"] == "600"
    for response in (preflight, answer, failure):
        assert response.headers["access-control-allow-origin"] == "https://a.example"
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "request-id", "x-ratelimit-reset-tokens"} <= {*exposed}
    assert len(exposed) == len({*exposed})
    assert [name for name in exposed if name.startswith("anthropic-")] == [
        f"anthropic-ratelimit-{group}-{what}"
        for group in ("requests", "tokens", "input-tokens", "output-tokens")
        for what in ("limit", "remaining", "reset")
    ]
    assert "access-control-allow-origin" not in admin.headers


async def test_without_configured_origins_no_page_may_ask() -> None:
    async with node() as served:
        answer = await ask(
            served.port, "POST", "/v1/chat/completions", chat(), {"origin": "https://a.example"}
        )
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "sent",
    [
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"x-forwarded-proto": "https"},
        {"x-forwarded-client-cert": "URI=a"},
        {"origin": "http://127.0.0.1:3000"},
        {"sec-fetch-site": "cross-site"},
        {"host": "rebound.example"},
        {"host": "rebound.example:30000"},
    ],
)
async def test_operator_routes_refuse_whoever_only_looks_local(sent: dict[str, str]) -> None:
    async with node() as served:
        for method, path in (
            ("GET", "/workers"),
            ("POST", "/workers/w-1/drain"),
            ("GET", "/metrics"),
        ):
            response = await ask(served.port, method, path, b"", sent)
            assert response.status == 403
            assert response.error()["code"] == "insufficient_permissions"
        assert served.workers.fleet["w-1"].status == "ready"
        assert (await ask(served.port, "GET", "/v1/models", b"", sent)).status == 200


async def test_two_foreign_keys_are_no_mistake_where_none_is_needed() -> None:
    sent = {"authorization": "Bearer one", "x-api-key": "two"}
    async with node() as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(), sent)
    assert response.status == 200


async def test_a_client_that_hangs_up_while_it_waits_frees_everything() -> None:
    async with node(silence) as served:
        async with connect(served.port) as client:
            await client.send("POST", "/v1/chat/completions", json.dumps(chat()).encode())
            await served.generations.started.wait()
            client.vanish()
            await served.generations.runs[0].closed.wait()
        row = {"route": "/v1/chat/completions", "method": "POST", "status": "499"}
        assert served.sample("smg_node_http_requests_total", **row) == 1
        assert json.loads(served.access.lines[-1])["status"] == 499
