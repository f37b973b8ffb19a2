"""`smg-admin explain`, against the real route."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.admin.views.journey_view import draw_explained
from smg_node.core.journey import Broke, Chosen, Ran, Rated, Viewed
from smg_node.http.openapi.explain import EXPLAIN_EXAMPLE
from support.http.admin_api import RunAdmin, admin_api
from support.http.http_node import Node, node
from support.http.journeys import BEGAN_MS, broke, chosen, outcome, told
from support.http.raw_http import ask


async def admin(run: RunAdmin, served: Node, *words: str) -> tuple[int, str, str]:
    return await asyncio.to_thread(run, "--url", f"http://127.0.0.1:{served.port}", *words)


async def story(run: RunAdmin, *steps: Chosen | Broke, ended: bool = True, **end: Any) -> str:
    """Return what is told of a request with these steps."""
    async with node() as served:
        del served.cluster.rows["b"]
        journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
        journey.steps = list(steps)
        if ended:
            served.journal.end(journey, outcome(**end), BEGAN_MS + 2410)
        code, out, err = await admin(run, served, "explain", "req_1")
    assert (code, err) == (0, "")
    return out


async def test_a_request_is_told_in_the_order_of_time_with_reasons(run: RunAdmin) -> None:
    async with node() as served:
        told(served.journal, "req_1", answer="77")
        code, out, _ = await admin(run, served, "explain", "chatcmpl-77")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "request  req_1, answer 77"
    assert lines[1] == "model    m, chat, on node node-a"
    assert lines[3] == "end      complete (200) after 2.41 s; the first token after 118 ms"
    assert lines[4].startswith(
        "tokens   4600 in the prompt, 4096 of them cached; 96 generated, 41.4"
    )
    assert lines[5] == "calls    2, 1 of them to go on in the middle"
    assert lines[7] == "+4 ms     chose w-1 (grpc://e:1), 4600 prompt tokens"
    assert lines[8].split() == ["WORKER", "COST", "WAITING", "CACHED", "URL"]
    assert lines[9].split() == [">", "w-1", "81", "ms", "18", "ms", "4096", "grpc://e:1"]
    assert lines[10].split() == ["w-2", "575", "ms", "0", "ms", "0", "-"]
    assert lines[11].strip() == "left out: w-3 (breaker open)"
    assert lines[12].strip() == (
        "It costs 494 ms less than w-2: it has 4096 more tokens of the prompt in its cache, "
        "though its queue is 18 ms longer."
    )
    assert lines[14] == (
        "+1.21 s   w-1 broke off after 41 tokens: the connection was lost (engine_unreachable)"
    )
    assert lines[15].strip() == "then: continued elsewhere"
    assert lines[17] == "+1.21 s   continued on w-2, 4641 prompt tokens"
    assert "b could not be asked: no member is called 'b'" in lines[-1]


def rated(ours: tuple[float, float, float], other: tuple[float, float, float]) -> tuple[Rated, ...]:
    return Rated("w-1", *ours), Rated("w-2", *other)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (chosen(why="target"), "The client named this worker; no other was considered."),
        (
            chosen(key=True, policy="manual"),
            "Its routing key decided (manual): requests with one key meet on one worker.",
        ),
        (chosen(of=1), "It was the only candidate."),
        (
            chosen(of=1, policy="probe", rated=()),
            "Nobody else was left: this request tries whether the worker is well again.",
        ),
        (
            chosen(rated=(), of=3, policy="random"),
            "random picked it among 3 candidates; it computes no costs.",
        ),
        (
            chosen("w-7", of=64),
            "cache_aware picked it among 64 candidates, beyond the 2 that cost least.",
        ),
        (
            chosen(rated=rated((0.2, 0.1, 0), (0.2001, 0.1, 0))),
            "It costs no more than w-2; cache_aware draws among equals.",
        ),
        (
            chosen(rated=rated((0.23, 0.1, 0), (0.2, 0.1, 0))),
            "cache_aware took it although w-2 costs 30 ms less: near-equals are drawn, and a new beginning"
            " goes where all nodes would send it, so that they do not crowd one worker.",
        ),
        (
            chosen(rated=rated((0.1, 0.0, 0), (0.9, 0.8, 64))),
            "It costs 800 ms less than w-2: its queue is 800 ms shorter, though it has 64 fewer tokens of"
            " the prompt in its cache.",
        ),
        (
            chosen(rated=rated((0.1, 0.0, 128), (1.3, 1.0, 64))),
            "It costs 1.2 s less than w-2: it has 64 more tokens of the prompt in its cache and its queue"
            " is 1 s shorter.",
        ),
        (chosen(rated=rated((0.1, 0.0, 0), (0.3, 0.0, 0))), "It costs 200 ms less than w-2."),
    ],
    ids=range(11),
)
async def test_every_decision_has_its_reason(run: RunAdmin, step: Chosen, reason: str) -> None:
    assert (await story(run, step)).splitlines()[-1].strip() == reason


@pytest.mark.parametrize(
    ("other", "policy", "reason"),
    [
        (0.000582, "choose=cheapest", "It costs 0.000268 dollars less than w-2."),
        (0.000314, "choose=cheapest", "It costs no more dollars than w-2; of equals the soonest"),
        (None, "choose=cheapest", "It is the only one with a known price."),
        (0.000582, "choose=fastest", "It costs 494 ms less than w-2"),
    ],
)
async def test_where_prices_are_weighed_they_are_shown(
    run: RunAdmin, other: float | None, policy: str, reason: str
) -> None:
    costs = [Rated("w-1", 0.081, 0.0, 0.0, 0.000314), Rated("w-2", 0.575, 0.0, 0.0, other)]
    lines = (await story(run, chosen(policy=policy, rated=costs, dropped=()))).splitlines()
    [head] = [at for at, line in enumerate(lines) if "WORKER" in line]
    assert lines[head].split() == ["WORKER", "COST", "WAITING", "CACHED", "DOLLARS", "URL"]
    shown = "-" if other is None else f"{other:.6f}"
    assert "0.000314" in lines[head + 1].split()
    assert shown in lines[head + 2].split()
    assert lines[head + 3].strip().startswith(reason)


async def test_a_request_under_way_is_told_as_far_as_it_is(run: RunAdmin) -> None:
    out = await story(run, chosen(waited_ms=120, of=64), broke(emitted=0, then=""), ended=False)
    assert "end      is under way\ntokens   -\ncalls    1\n" in out
    assert "chose w-1 (grpc://e:1) after waiting 120 ms for one, 4600 prompt tokens" in out
    assert "and 62 more that cost more" in out
    assert "w-1 broke off before its first token: the connection was lost" in out
    assert "then:" not in out


async def test_a_refused_request_is_told_without_any_step(run: RunAdmin) -> None:
    out = await story(
        run, kind="refused", status=404, error_code="model_not_found", first_token_s=None
    )
    assert "end      refused (404, model_not_found) after 2.41 s\n" in out
    assert out.splitlines()[-1] == "calls    0"


async def test_a_request_that_found_no_worker_is_told_why(run: RunAdmin) -> None:
    async with node() as served:
        journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
        journey.unplaced = (("w-1", "breaker open"), ("w-2", "draining\x1b"))
        late = outcome("refused", error_code="no_worker_available", status=503)
        served.journal.end(journey, late, BEGAN_MS + 2000)
        _, out, _ = await admin(run, served, "explain", "req_1")
        _, raw, _ = await admin(run, served, "explain", "req_1", "--json")
    assert "No worker could be had: w-1 (breaker open), w-2 (draining\\x1b)." in out
    assert json.loads(raw)["journeys"][0]["unplaced"][0] == {
        "worker": "w-1",
        "reason": "breaker open",
    }
    assert json.loads(raw)["workers"] == {"w-1": "grpc://e:1"}


async def test_several_answers_are_told_apart_and_what_is_missing_is_said(run: RunAdmin) -> None:
    steps: list[Chosen | Broke] = [
        chosen(),
        *(chosen(choice=at, why="another") for at in range(1, 128)),
        broke(),
    ]
    out = await story(run, *steps)
    assert "+4 ms     answer 0: chose w-1" in out
    assert "answer 127: chose, for a further answer, w-1" in out


async def test_what_was_not_kept_is_counted(run: RunAdmin) -> None:
    async with node() as served:
        journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
        for _ in range(300):
            journey.add(broke())
        _, out, _ = await admin(run, served, "explain", "req_1")
    assert "44 more steps were not kept." in out


async def test_what_engines_say_cannot_steer_the_terminal(run: RunAdmin) -> None:
    out = await story(
        run, chosen(dropped=(("w-3", "\x1b[2J"),)), broke(message="\x1b]0;x\x07\nfake line")
    )
    assert "\x1b" not in out
    assert "\\x1b]0;x\\x07\\nfake line" in out


async def test_several_journeys_of_one_id_are_all_told(run: RunAdmin) -> None:
    async with node() as served:
        for at in range(3):
            told(served.journal, "req_1", BEGAN_MS + at)
        _, out, _ = await admin(run, served, "explain", "req_1", "--node", "node-a")
    assert out.startswith("This id has 3 journeys; the newest comes first.\n\nrequest  req_1\n")
    assert out.count("request  req_1") == 3
    assert "could not be asked" not in out


async def test_scripts_get_what_the_node_says(run: RunAdmin) -> None:
    async with node() as served:
        told(served.journal, "req_1")
        code, out, _ = await admin(run, served, "explain", "req_1", "--json")
        none = await admin(run, served, "explain", "req_2", "--json")
        nobody = await admin(run, served, "explain", "req_1", "--node", "c")
    assert code == 0
    assert json.loads(out)["journeys"][0]["steps"][0]["worker"] == "w-1"
    assert (none[0], none[1]) == (1, "")
    assert "no node that answers knows the request 'req_2'" in none[2]
    assert nobody[0] == 1


def test_the_documented_example_can_be_told() -> None:
    out = draw_explained(EXPLAIN_EXAMPLE)
    assert "c could not be asked: no answer in 2.0 s" in out
    assert "continued on w-19ab40e7c655 (grpc://10.0.0.8:30100), 4641 prompt tokens" in out


def test_watching_shows_it_again_until_somebody_has_seen_enough(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 3

    def sleep(_: float) -> None:
        nonlocal left
        left -= 1
        if left % 3 == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("smg_node.admin.views.watch_loop.time.sleep", sleep)
    with admin_api(lambda _: (200, EXPLAIN_EXAMPLE)) as api:
        code, out, _ = run("--url", api.url, "explain", "req_1", "--watch", "--node", "b")
        _, lines, _ = run("--url", api.url, "explain", "req_1", "--watch", "--json")
    assert code == 0
    assert out.count("continued on") == 3
    assert api.asked[0].path == "/v1/cluster/explain/req_1?node=b"
    assert [json.loads(line) for line in lines.splitlines()] == [EXPLAIN_EXAMPLE] * 3


async def test_a_refused_request_is_told_with_the_reason(run: RunAdmin) -> None:
    async with node() as served:
        del served.cluster.rows["b"]
        refused = await ask(served.port, "POST", "/v1/chat/completions", {"model": "m"})
        request_id = refused.headers["x-request-id"]
        code, out, _ = await admin(run, served, "explain", request_id)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"request  {request_id}"
    assert lines[3].startswith(f"end      refused (400, {refused.error()['code']}) after ")
    assert lines[-1] == f"It was refused: {refused.error()['message']}"


def test_an_answer_of_a_node_of_the_release_before_is_drawn_too() -> None:
    journeys = [
        {name: value for name, value in journey.items() if name != "message"}
        for journey in EXPLAIN_EXAMPLE["journeys"]
    ]
    older = {**EXPLAIN_EXAMPLE, "journeys": journeys}
    assert draw_explained(older) == draw_explained(EXPLAIN_EXAMPLE)


async def test_runs_of_tools_are_told_with_verdict_rule_and_time(run: RunAdmin) -> None:
    async with node() as served:
        told(served.journal, "req_1")
        served.journal.ran("req_1", Ran(BEGAN_MS, "docs", "search", "allow", "default", "ok", 1200))
        refused = Ran(BEGAN_MS, "docs", "drop\x1b[31m", "deny", "rules: dr*", "refused")
        served.journal.ran("req_1", refused)
        code, out, _ = await admin(run, served, "explain", "req_1")
    assert code == 0
    assert "tool docs/search: allow by default; ok after 1.2 s" in out
    assert "deny by rules: dr*; refused" in out
    assert "\x1b" not in out


async def test_pictures_are_told_with_size_tokens_and_way(run: RunAdmin) -> None:
    async with node() as served:
        seen = Viewed("qwen3_vl", 640, 480, 300, "ab" * 32, "tensors", "w-1")
        unknown = Viewed("", 0, 0, 0, "", "references", "w\x1b[31m")
        journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
        journey.add(chosen())
        kept = replace(seen, maker="kept", transport="shared memory")
        own = replace(seen, maker="node", transport="message")
        left = replace(unknown, maker="engine")
        journey.pictures = (seen, unknown, kept, own, left)
        mean = ("image_mean", (0.5, 0.5, 0.5), "family default")
        journey.processor = (("max_pixels", 1003520, "models.media.processor"), mean)
        served.journal.end(journey, outcome(), BEGAN_MS + 2410)
        code, out, _ = await admin(run, served, "explain", "req_1")
    assert code == 0
    assert "640 x 480, 300 tokens by the rules of qwen3_vl, abababababab…, as tensors to w-1" in out
    assert "max_pixels = 1003520 (models.media.processor)" in out
    assert "image_mean = 0.5, 0.5, 0.5 (family default)" in out
    assert "as references to" in out
    assert "made for an earlier request, as tensors in shared memory to w-1" in out
    assert "made by this node, as tensors to w-1" in out
    assert "left to the engine, as references to w" in out
    assert "\x1b" not in out
