"""Pairs of HTTP workers behind a real node: in every manner, one answer comes of two of them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from openai import InternalServerError, OpenAI

from smg_chaos.engine.plans import Wanted
from support.engines.simulated_engine import Served, served
from support.engines.simulated_pair import served_pair
from support.http.chat_client import becomes, begin, chat, content_of, port_of, say, text_of
from support.http.raw_http import ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS

pytestmark = pytest.mark.integration

MANNERS = ("sglang", "nixl", "mooncake", "store")
IN_TURN = MANNERS[1:]
FAILING = "failing"
SLOW = "slow"
WAIT_S = 30.0

Pair = tuple[Served, Served]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Pair]]:
    """Pairs of each manner, one whose hand-overs fail now and then, and one that takes its time."""
    store = tmp_path_factory.mktemp("store")
    with ExitStack() as stack:

        def pair(manner: str, **more: Any) -> Pair:
            known = {"engine_id": "e7"} if manner == "mooncake" else {}
            return stack.enter_context(served_pair("openai", manner, **known, **more))

        def with_store(role: str) -> Served:
            said = {"contract": "openai", "kv_connector": "store", "role": role}
            return stack.enter_context(served(Wanted(settings=said, kv_store=store)))

        yield {
            **{manner: pair(manner) for manner in MANNERS if manner != "store"},
            "store": (with_store("prefill"), with_store("decode")),
            FAILING: pair("sglang", faults=["transfer-fails:every=2"]),
            SLOW: pair("nixl", step_s=0.02),
        }


def urls_of(name: str, pair: Pair) -> list[str]:
    """Return what an operator says of both."""
    manner = {FAILING: "sglang", SLOW: "nixl"}.get(name, name)
    port = pair[0].engines[0].pairs.where[1]
    said = f"model={name}&label.kv_connector={manner}&label.kv_engine_id=e7"
    first = f"http://{pair[0].address}?role=prefill&{said}"
    return [
        f"{first}&bootstrap_port={port}" if port else first,
        f"http://{pair[1].address}?role=decode&{said}",
    ]


@pytest.fixture(scope="module")
def node(
    pairs: Mapping[str, Pair], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    workers = [url for name, pair in pairs.items() for url in urls_of(name, pair)]
    with running_node(tmp_path_factory.mktemp("node"), workers=workers) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def tallies(pair: Pair) -> tuple[int, int]:
    """Return how many prompts the first one handed over, and how many the second one took over."""
    return pair[0].engines[0].tally.handed_over, pair[1].engines[0].tally.taken_over


@pytest.mark.parametrize("manner", MANNERS)
def test_the_text_is_that_of_one_worker_streamed_and_not(
    manner: str, client: OpenAI, pairs: Mapping[str, Pair]
) -> None:
    before, asked = tallies(pairs[manner]), pairs[manner][0].engines[0].tally.requests
    whole = client.chat.completions.create(
        model=manner, messages=[{"role": "user", "content": "Hello?"}], max_tokens=200
    )
    assert whole.choices[0].message.content == SAYS
    assert whole.model == manner
    stream = client.chat.completions.create(
        model=manner,
        messages=[{"role": "user", "content": "Hello?"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == SAYS
    assert chunks[-1].usage is not None
    told = client.completions.create(model=manner, prompt=["Hello?"], max_tokens=100)
    assert told.choices[0].text == SAYS
    assert pairs[manner][0].engines[0].tally.requests - asked == 3
    if manner != "store":  # through a store nothing goes from one to the other
        assert tallies(pairs[manner]) == (before[0] + 3, before[1] + 3)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_usage_tells_what_the_first_one_had_cached(
    manner: str, stream: bool, node: RunningNode
) -> None:
    words = f"{manner} {stream} " + "and so on " * 60
    body = chat(manner, max_tokens=4, messages=[{"role": "user", "content": words}])
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    cached = []
    for _ in range(2):
        answer = await say(port_of(node.url), body)
        told = re.search(rb'"prompt_tokens":(\d+).*"cached_tokens":(\d+)', answer.body)
        assert told is not None
        assert int(told[1]) > 64
        cached.append(int(told[2]))
    # The second worker would say of both that it computed next to nothing.
    assert cached[0] < 32 <= cached[1]


async def test_both_halves_are_explained(node: RunningNode) -> None:
    answer = await say(port_of(node.url), chat("nixl"))
    assert content_of(answer) == SAYS
    request_id = answer.headers["x-request-id"]
    told = (await ask(port_of(node.url), "GET", f"/v1/cluster/explain/{request_id}")).json()
    chosen = [step for step in told["journeys"][0]["steps"] if step["step"] == "chosen"]
    assert [step["role"] for step in chosen] == ["prefill", "decode"]
    assert len({step["worker"] for step in chosen}) == 2


@pytest.mark.parametrize("manner", IN_TURN)
def test_several_answers_are_the_second_ones_own_work(
    manner: str, client: OpenAI, pairs: Mapping[str, Pair]
) -> None:
    before = tallies(pairs[manner])
    asked = pairs[manner][0].engines[0].tally.requests
    whole = client.chat.completions.create(
        model=manner, messages=[{"role": "user", "content": "Hello?"}], n=2
    )
    assert [one.message.content for one in whole.choices] == [SAYS, SAYS]
    assert pairs[manner][0].engines[0].tally.requests == asked
    assert tallies(pairs[manner]) == before


def test_a_room_gives_one_answer_and_says_so(client: OpenAI) -> None:
    with pytest.raises(InternalServerError, match="one answer to one prompt") as caught:
        client.chat.completions.create(
            model="sglang", messages=[{"role": "user", "content": "Hello?"}], n=2
        )
    assert caught.value.status_code == 501


@pytest.mark.parametrize(
    "field", ["bootstrap_room", "kv_transfer_params", "data_parallel_rank", "routed_dp_rank"]
)
async def test_a_client_does_not_steer_hand_overs(field: str, node: RunningNode) -> None:
    for value in (0, {"a": 1}):
        answer = await say(port_of(node.url), chat("sglang", **{field: value}))
        assert answer.status == 400
        assert field in answer.json()["error"]["message"]
    # What says nothing is no steering, and does not undo what is put in.
    assert content_of(await say(port_of(node.url), chat("sglang", **{field: None}))) == SAYS


async def test_hand_overs_that_fail_are_made_again(
    node: RunningNode, pairs: Mapping[str, Pair]
) -> None:
    for _ in range(4):
        assert content_of(await say(port_of(node.url), chat(FAILING))) == SAYS
    assert sum(pairs[FAILING][1].engines[0].tally.faults.values()) >= 2


async def test_a_client_that_leaves_frees_both(
    node: RunningNode, pairs: Mapping[str, Pair]
) -> None:
    first, second = (side.engines[0] for side in pairs[SLOW])
    async with connect(port_of(node.url)) as connection:
        stream = await begin(connection, chat(SLOW))
        await stream.until_text()

    def free() -> bool:
        return all(
            rank.scheduler.running + rank.scheduler.waiting == 0
            for engine in (first, second)
            for rank in engine.ranks
        )

    await becomes(free, WAIT_S, "both engines free")
    async with connect(port_of(node.url)) as connection:
        again = await begin(connection, chat(SLOW))
        assert text_of(await again.to_end()) == SAYS
