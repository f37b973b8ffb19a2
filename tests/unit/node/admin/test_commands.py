import json
from typing import Any

import pytest

from support.http.admin_api import Asked, RunAdmin, Script, admin_api

_READY: dict[str, Any] = {
    "id": "w-2",
    "url": "grpc://10.0.0.8:50051",
    "model": "meta/llama",
    "contract": "vllm",
    "role": "regular",
    "status": "ready",
    "reason": "",
    "inflight": 3,
    "labels": {"zone": "a"},
    "details": {"context": 8192, "server": {"tp_size": "2"}},
}
_PENDING = {**_READY, "id": "w-1", "url": "grpc://10.0.0.7:50051", "status": "pending"}
_PENDING |= {"reason": "not looked at yet", "contract": "", "details": {}, "inflight": 0}


def _fleet(*workers: dict[str, Any]) -> Script:
    stats = {"total": len(workers), "by_status": {"pending": 1, "ready": 1}}
    accepted = {"status": "accepted", "worker_id": "w-2", "location": "/workers/w-2"}
    missing = {"error": {"message": "there is no such worker", "code": "worker_not_found"}}

    def script(asked: Asked) -> tuple[int, Any]:
        path = asked.path.partition("?")[0]
        if path == "/workers":
            listed = {"workers": workers, "stats": stats}
            return (200, listed) if asked.method == "GET" else (202, accepted)
        found = next((view for view in workers if path.startswith(f"/workers/{view['id']}")), None)
        if found is None:
            return 404, missing
        removed = {"status": "removed", "worker_id": found["id"]}
        return 200, removed if asked.method == "DELETE" else found

    return script


def test_workers_are_listed_sorted_in_a_table(run: RunAdmin) -> None:
    with admin_api(_fleet(_READY, _PENDING)) as api:
        code, out, err = run("--url", api.url, "workers", "list")
    lines = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[0][:3] == ["ID", "URL", "MODEL"]
    assert lines[1][:2] == ["w-1", "grpc://10.0.0.7:50051"]
    assert lines[1][-4:] == ["not", "looked", "at", "yet"]
    assert lines[2] == [
        *["w-2", "grpc://10.0.0.8:50051", "meta/llama", "vllm", "regular", "1", "ready", "3", "-"]
    ]


def test_the_list_says_who_plays_which_part_with_how_many_ranks(run: RunAdmin) -> None:
    prefill = {**_READY, "role": "prefill", "ranks": 8, "bootstrap_port": 8998}
    with admin_api(_fleet(prefill)) as api:
        _, out, _ = run("--url", api.url, "workers", "list", "--role", "prefill")
        _, facts, _ = run("--url", api.url, "workers", "show", "w-2")
    head, row = (line.split() for line in out.splitlines())
    assert head[4:6] == ["ROLE", "RANKS"]
    assert row[4:6] == ["prefill", "8"]
    assert api.asked[0].path == "/workers?role=prefill"
    assert "bootstrap_port  8998" in " ".join(facts.split(" ")).replace("   ", "  ")


def test_workers_are_listed_sorted_in_json(run: RunAdmin) -> None:
    with admin_api(_fleet(_READY, _PENDING)) as api:
        code, out, _ = run("workers", "list", "--json", "--url", api.url)
    assert code == 0
    assert json.loads(out) == [_PENDING, _READY]


def test_filters_are_left_to_the_node(run: RunAdmin) -> None:
    with admin_api(_fleet()) as api:
        code, out, _ = run(
            "--url", api.url, "workers", "list", "--model", "a b/c", "--status=ready"
        )
    assert (code, out) == (0, "There are no workers.\n")
    assert api.asked[0].path == "/workers?model=a+b%2Fc&status=ready"


def test_a_wide_row_is_not_cut_in_a_pipe(run: RunAdmin) -> None:
    model = "m" * 400
    with admin_api(_fleet({**_READY, "model": model})) as api:
        _, out, _ = run("--url", api.url, "workers", "list")
    assert model in out


def test_how_busy_a_worker_is_has_a_place_of_its_own(run: RunAdmin) -> None:
    busy = {"running": 12, "wait_ms": 210, "stuck": False}
    with admin_api(_fleet({**_READY, "busy": busy}, _PENDING)) as api:
        _, facts, _ = run("--url", api.url, "workers", "show", "w-2")
        _, quiet, _ = run("--url", api.url, "workers", "show", "w-1")
    after = facts.partition("How busy it is:")[2].split()
    assert after[:6] == ["running", "12", "wait_ms", "210", "stuck", "no"]
    assert "not looked at yet" in quiet
    assert "busy" not in quiet


def test_what_an_engine_says_cannot_steer_the_terminal(run: RunAdmin) -> None:
    with admin_api(_fleet({**_READY, "model": "a\x1b[2Jb", "details": {"x": "c\rd"}})) as api:
        _, table, _ = run("--url", api.url, "workers", "list")
        _, facts, _ = run("--url", api.url, "workers", "show", "w-2")
    assert "\x1b" not in table + facts
    assert "\r" not in facts


def test_a_worker_is_shown_by_id_or_by_url(run: RunAdmin) -> None:
    with admin_api(_fleet(_READY, _PENDING)) as api:
        _, by_id, _ = run("--url", api.url, "workers", "show", "w-2")
        _, by_url, _ = run("--url", api.url, "workers", "show", "grpc://10.0.0.8:50051?model=x")
        _, as_json, _ = run("--url", api.url, "workers", "show", "w-2", "--json")
        missing = run("--url", api.url, "workers", "show", "grpc://nowhere:1")
    assert by_id == by_url
    assert "tp_size" in by_id
    assert "zone=a" in by_id
    assert json.loads(as_json) == _READY
    assert missing == (1, "", "smg-admin: no worker has the URL grpc://nowhere:1\n")


def test_an_id_is_one_segment_of_the_path(run: RunAdmin) -> None:
    with admin_api(_fleet()) as api:
        code, _, err = run("--url", api.url, "workers", "drain", "a/b?c")
    assert api.asked[0].path == "/workers/a%2Fb%3Fc/drain"
    assert (code, err) == (1, "smg-admin: there is no such worker\n")


def test_adding_sends_what_was_said_and_prints_the_id(run: RunAdmin) -> None:
    with admin_api(_fleet()) as api:
        code, out, _ = run(
            *["--url", api.url, "workers", "add", "grpc://10.0.0.8:50051", "--model", "m"],
            *["--role", "prefill", "--label", "zone=a", "--label", "x=1=2"],
            *["--bootstrap-port", "8998"],
        )
    assert code == 0
    assert out.startswith("w-2 is accepted")
    assert api.asked[0].body == {
        "url": "grpc://10.0.0.8:50051",
        "model": "m",
        "role": "prefill",
        "labels": {"zone": "a", "x": "1=2"},
        "bootstrap_port": 8998,
    }


def test_adding_in_json_prints_the_nodes_answer(run: RunAdmin) -> None:
    with admin_api(_fleet()) as api:
        _, out, _ = run("--url", api.url, "--json", "workers", "add", "grpc://h:1")
    assert json.loads(out)["worker_id"] == "w-2"


def _becoming(*views: dict[str, Any]) -> Script:
    left = list(views)

    def script(asked: Asked) -> tuple[int, Any]:
        if asked.method == "POST":
            return 202, {"status": "accepted", "worker_id": "w-2", "location": "/workers/w-2"}
        return 200, left.pop(0) if len(left) > 1 else left[0]

    return script


def test_adding_can_wait_until_the_worker_is_ready_and_tells_each_state_once(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.admin.commands.workers._POLL_S", 0.001)
    pending = {**_READY, "status": "pending", "reason": "asking its tokenizer"}
    with admin_api(_becoming(pending, pending, pending, _READY)) as api:
        code, out, err = run("--url", api.url, "workers", "add", "grpc://h:1", "--wait")
    assert (code, out) == (0, "w-2 is ready and serves meta/llama\n")
    assert err == "w-2 is pending: asking its tokenizer\n"


def test_waiting_ends_at_once_when_the_worker_failed(run: RunAdmin) -> None:
    failed = {**_READY, "status": "failed", "reason": "it serves another model"}
    with admin_api(_becoming(failed)) as api:
        code, _, err = run("--url", api.url, "workers", "add", "grpc://h:1", "--wait")
    assert (code, err) == (1, "smg-admin: w-2 is failed: it serves another model\n")


def test_waiting_ends_when_time_is_up(run: RunAdmin) -> None:
    with admin_api(_becoming({**_READY, "status": "not_ready", "reason": "no answer"})) as api:
        code, _, err = run(
            *["--url", api.url, "workers", "add", "grpc://h:1", "--wait", "--wait-s", "0.1"]
        )
    assert code == 1
    assert err.splitlines()[-1] == (
        "smg-admin: w-2 is not ready after 0.1 s; it is not_ready: no answer"
    )


@pytest.mark.parametrize("verb", ["drain", "undrain", "probe"])
def test_a_worker_is_changed_by_a_post(run: RunAdmin, verb: str) -> None:
    with admin_api(_fleet(_READY)) as api:
        code, out, _ = run("--url", api.url, "workers", verb, "w-2")
        _, as_json, _ = run("--url", api.url, "workers", verb, "w-2", "--json")
    assert (api.asked[0].method, api.asked[0].path) == ("POST", f"/workers/w-2/{verb}")
    assert code == 0
    assert "it is ready, 3 in flight" in out
    assert json.loads(as_json) == _READY


def test_removing_drains_first_unless_forced(run: RunAdmin) -> None:
    with admin_api(_fleet(_READY)) as api:
        assert run("--url", api.url, "workers", "remove", "w-2")[:2] == (0, "w-2 is removed\n")
        assert run("--url", api.url, "workers", "remove", "w-2", "--force")[0] == 0
    assert [asked.path for asked in api.asked] == ["/workers/w-2", "/workers/w-2?force=true"]
    assert {asked.method for asked in api.asked} == {"DELETE"}


def test_models_are_listed_once_with_their_aliases(run: RunAdmin) -> None:
    own = {"workers": 2, "workers_ready": 1, "context": 8192, "aliases": ["z", "a"]}
    rows = [
        {"id": "zeta", "owned_by": "o", "created": 5, "x_smg": {**own, "aliases": []}},
        {"id": "meta/llama", "owned_by": "o", "created": 5, "x_smg": own},
        {"id": "a", "owned_by": "o", "created": 5, "x_smg": {**own, "alias_of": "meta/llama"}},
    ]
    with admin_api(lambda _: (200, {"object": "list", "data": rows})) as api:
        _, table, _ = run("--url", api.url, "models", "list")
        _, as_json, _ = run("--url", api.url, "models", "list", "--json")
    assert [line.split()[0] for line in table.splitlines()] == ["MODEL", "meta/llama", "zeta"]
    assert "8192" in table
    assert [model["id"] for model in json.loads(as_json)] == ["meta/llama", "zeta"]
    assert json.loads(as_json)[0]["aliases"] == ["a", "z"]


_PARSERS = {
    "reasoning": {
        "name": "think",
        "options": ["implicit", "trim"],
        "source": "chat template",
        "evidence": "'<think>' in the chat template",
    },
    "tools": {
        "name": "glm",
        "options": [],
        "source": "worker",
        "evidence": "tool_call_parser: glm47",
    },
    "warnings": ["the worker says otherwise than it looks"],
}


def test_how_a_models_answers_are_read_is_told_with_what_decided(run: RunAdmin) -> None:
    row = {"id": "org/m", "x_smg": {"workers": 1, "workers_ready": 1, "parsers": _PARSERS}}
    with admin_api(lambda _: (200, row)) as api:
        code, told, _ = run("--url", api.url, "models", "explain", "org/m")
        _, as_json, _ = run("--url", api.url, "models", "explain", "org/m", "--json")
    assert code == 0
    assert [asked.path for asked in api.asked] == ["/v1/models/org/m"] * 2
    assert [line.split() for line in told.splitlines()] == [
        ["model", "org/m"],
        ["thoughts", "think+implicit+trim"],
        ["chat", "template:", "'<think>'", "in", "the", "chat", "template"],
        ["tool", "calls", "glm"],
        ["worker:", "tool_call_parser:", "glm47"],
        ["warning", "the", "worker", "says", "otherwise", "than", "it", "looks"],
    ]
    assert json.loads(as_json)["parsers"] == _PARSERS


_RULES = [
    {
        "workers": 2,
        "family": "qwen3_vl",
        "why_not": "",
        "values": [
            {"name": "image_mean", "value": [0.5, 0.5, 0.5], "origin": "family default"},
            {"name": "max_pixels", "value": 1003520, "origin": "models.media.processor"},
        ],
    },
    {"workers": 1, "family": "", "why_not": "resample is 0", "values": []},
]


def test_how_a_models_pictures_are_made_is_told_with_where_each_number_is_from(
    run: RunAdmin,
) -> None:
    own = {"workers": 3, "parsers": _PARSERS, "modalities": ["text", "image"], "pictures": _RULES}
    with admin_api(lambda _: (200, {"id": "m", "x_smg": own})) as api:
        _, told, _ = run("--url", api.url, "models", "explain", "m")
        _, as_json, _ = run("--url", api.url, "models", "explain", "m", "--json")
    assert "pictures    qwen3_vl, at 2 of its workers" in told
    assert "image_mean = 0.5, 0.5, 0.5 (family default)" in told
    assert "max_pixels = 1003520 (models.media.processor)" in told
    assert "by its engines: resample is 0, at 1 of its workers" in told
    assert "prepare pictures differently" in told
    assert json.loads(as_json)["pictures"] == _RULES


def test_a_model_of_workers_that_speak_http_has_no_parsers_here(run: RunAdmin) -> None:
    with admin_api(lambda _: (200, {"id": "m", "x_smg": {"workers": 1}})) as api:
        _, told, _ = run("--url", api.url, "models", "explain", "m")
        _, table, _ = run("--url", api.url, "models", "explain", "--help")
    assert "its workers speak HTTP" in told
    assert "what decided" in table


def _node(*, ready: bool, workers: int = 200) -> Script:
    probe = {
        "status": "ready" if ready else "not ready",
        "reasons": [] if ready else ["no workers"],
    }
    answers: dict[str, tuple[int, Any]] = {
        "/version": (200, {"name": "smg-node", "version": "0.1.0", "commit": "abc", "wire": None}),
        "/readiness": (200 if ready else 503, probe),
        "/workers": (
            workers,
            {"workers": [_READY, _PENDING], "stats": {"by_status": {"ready": 1, "pending": 1}}},
        ),
    }
    return lambda asked: answers[asked.path]


def test_status_of_a_ready_node_is_0(run: RunAdmin) -> None:
    with admin_api(_node(ready=True)) as api:
        code, out, _ = run("--url", f"{api.url}/", "status")
    assert code == 0
    assert out.splitlines() == [
        f"node     smg-node 0.1.0 (abc) at {api.url}",
        "state    ready",
        "workers  1 pending, 1 ready",
    ]


def test_status_of_a_node_that_is_not_ready_says_why_and_is_1(run: RunAdmin) -> None:
    with admin_api(_node(ready=False)) as api:
        code, out, _ = run("--url", api.url, "status")
        json_code, as_json, _ = run("--url", api.url, "status", "--json")
    assert (code, json_code) == (1, 1)
    assert "not ready\n" in out
    assert "no workers" in out
    found = json.loads(as_json)
    assert (found["ready"], found["reasons"], found["workers"]["total"]) == (
        False,
        ["no workers"],
        2,
    )


@pytest.mark.parametrize("refusal", [401, 403, 404])
def test_status_without_a_key_that_is_needed_leaves_the_workers_out(
    run: RunAdmin, refusal: int
) -> None:
    with admin_api(_node(ready=True, workers=refusal)) as api:
        code, told, _ = run("--url", api.url, "status")
        _, as_json, _ = run("--url", api.url, "status", "--json")
    assert code == 0
    assert "state    ready\nworkers  not shown without an operator's key" in told
    assert json.loads(as_json)["workers"] is None


def test_status_with_a_key_that_is_refused_is_an_error(run: RunAdmin) -> None:
    refusal = {"error": {"message": "no such key", "code": "invalid_api_key"}}
    with admin_api(
        lambda a: (401, refusal) if a.path == "/workers" else _node(ready=True)(a)
    ) as api:
        code, told, error = run("--url", api.url, "--key", "smg-x", "status")
    assert (code, told) == (1, "")
    assert "no such key" in error


def test_loads_are_shown_by_worker_and_rank_with_failures_as_rows(run: RunAdmin) -> None:
    rows: list[dict[str, Any]] = [
        {"worker": "w-2", "rank": 1, "running": 4, "waiting": None, "kv_usage": 0.1234567},
        {"worker": "w-2", "rank": 0, "running": 0, "waiting": None, "kv_usage": 0.5},
        {"worker": "w-1", "error": "not connected"},
    ]
    with admin_api(lambda _: (200, {"loads": rows})) as api:
        _, table, _ = run("--url", api.url, "loads")
        _, as_json, _ = run("--url", api.url, "loads", "--json")
    lines = [line.split() for line in table.splitlines()]
    assert lines[0] == ["WORKER", "RANK", "RUNNING", "KV", "USED", "ERROR"]
    assert lines[1] == ["w-1", "-", "-", "-", "not", "connected"]
    assert lines[2] == ["w-2", "0", "0", "0.5", "-"]
    assert lines[3] == ["w-2", "1", "4", "0.123", "-"]
    assert [row["worker"] for row in json.loads(as_json)] == ["w-1", "w-2", "w-2"]
