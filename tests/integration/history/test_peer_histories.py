"""Nodes that each have a SQLite file, or a memory, of their own: a client talks to any of them, and none tells a lie."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

MODEL = "parrot"
WORDS = 16
ENGINE = ("--script", "echo", "--model", MODEL, "--itl-ms", "0.2", "--ttft-ms", "1")


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    folder = tmp_path_factory.mktemp("holders")
    (folder / "engine").mkdir()
    with running_simulated(folder / "engine", *ENGINE) as engine:
        own = ("--worker", f"grpc://{engine.address}", "--readiness.min-workers", "1")
        with running_trio(folder, *own) as running:
            for node in running.living:
                node.awaits_ready()
            yield running


def client(node: MeshNode) -> OpenAI:
    return client_at(node.node.url)


@cache
def client_at(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)


def answer(node: MeshNode, said: str, **more: Any) -> Any:
    return client(node).responses.create(
        model=MODEL,
        input=said,
        max_output_tokens=WORDS,
        extra_body={"ignore_eos": True},
        **more,
    )


def streamed(node: MeshNode, said: str, **more: Any) -> Any:
    """Return the object of a stream's last event."""
    events = list(answer(node, said, stream=True, **more))
    return events[-1].response


def same_for_all(nodes: Sequence[MeshNode], response: Any) -> None:
    for node in nodes:
        assert client(node).responses.retrieve(response.id) == response
        inputs = client(node).responses.input_items.list(response.id).data
        assert len(inputs) == 1


def test_a_chain_goes_on_from_any_node(trio: Trio) -> None:
    a, b, c = trio.living
    for first, second, third in ((a, b, c), (b, c, a), (c, a, b)):
        one = answer(first, "one")
        two = streamed(second, "two", previous_response_id=one.id)
        three = answer(third, "three", previous_response_id=two.id)
        alone = answer(first, "three", previous_response_id=two.id)
        assert three.output_text == alone.output_text
        assert three.id[17:29] == two.id[17:29] == one.id[17:29], "they are one thread"
        for response in (one, two, three):
            same_for_all(trio.living, response)
        client(third).responses.delete(one.id)
        for node in trio.living:
            with pytest.raises(openai.NotFoundError):
                client(node).responses.retrieve(one.id)
            with pytest.raises(openai.BadRequestError, match=r"no response"):
                answer(node, "four", previous_response_id=two.id)


def test_a_conversation_is_the_same_on_all_nodes(trio: Trio) -> None:
    a, b, c = trio.living
    room = client(a).conversations.create(
        items=[{"type": "message", "role": "user", "content": "hello"}], metadata={"k": "v"}
    )
    own = {"id": "msg_clientsown", "type": "message", "role": "user", "content": "mine"}
    client(b).conversations.items.create(room.id, items=[own])  # type: ignore[list-item]  # its own id
    answer(c, "one", conversation=room.id)
    streamed(b, "two", conversation=room.id)
    listed = [client(node).conversations.items.list(room.id, order="asc") for node in (a, b, c)]
    ids = [[item.id for item in page.data] for page in listed]
    assert ids[0] == ids[1] == ids[2]
    assert len(ids[0]) == 6
    assert "msg_clientsown" in ids[0]
    for node in (a, b, c):
        for item_id in ids[0]:
            found = client(node).conversations.items.retrieve(str(item_id), conversation_id=room.id)
            assert found.id == item_id
        changed = client(node).conversations.update(room.id, metadata={"by": node.name})
        assert client(a).conversations.retrieve(room.id) == changed
    referring = [{"type": "item_reference", "id": "msg_clientsown"}]
    answer(c, referring, conversation=room.id)  # type: ignore[arg-type]  # a list of items
    client(c).conversations.items.delete("msg_clientsown", conversation_id=room.id)
    client(b).conversations.delete(room.id)
    for node in (a, b, c):
        with pytest.raises(openai.NotFoundError):
            client(node).conversations.retrieve(room.id)


def test_a_response_of_the_background_is_followed_from_any_node(trio: Trio) -> None:
    a, b, c = trio.living
    first = answer(b, "one")
    made = answer(a, "two", previous_response_id=first.id, background=True)
    assert made.status == "queued"
    assert made.id[17:29] == first.id[17:29]
    told = [
        [event.to_json() for event in client(node).responses.retrieve(made.id, stream=True)]
        for node in (c, a, b)
    ]
    assert told[0] == told[1] == told[2]
    final = client(c).responses.retrieve(made.id)
    assert final.status == "incomplete"
    same_for_all(trio.living, final)
    assert answer(c, "three", previous_response_id=made.id).output_text


def test_a_key_of_the_clients_choice_is_the_same_on_all_nodes(trio: Trio) -> None:
    first = answer(trio["b"], "one")
    for key in ("key-1", "key-2", "key-3"):
        for before in ({}, {"previous_response_id": first.id}):
            named = {"Idempotency-Key": f"{key}-{len(before)}"}
            made = [answer(node, "two", extra_headers=named, **before) for node in trio.living]
            assert len({one.id for one in made}) == 1
            same_for_all(trio.living, made[0])


def test_what_nobody_knows_is_unknown_everywhere(trio: Trio) -> None:
    for node in trio.living:
        made = answer(node, "one").id
        for wrong in (
            f"{made[:-1]}{'0' if made[-1] != '0' else '1'}",
            f"resp_{'0' * 48}",
            "resp_x",
        ):
            for asked in trio.living:
                with pytest.raises(openai.NotFoundError):
                    client(asked).responses.retrieve(wrong)


def away(node: MeshNode, path: str) -> str:
    """Return what a node says of something that a node holds which is away."""
    said = httpx2.get(f"{node.node.url}{path}", timeout=30)
    assert said.status_code == 503, said.text
    assert said.json()["error"]["code"] == "store_unavailable"
    assert said.headers["retry-after"]
    return str(said.json()["error"]["message"])


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_while_a_node_is_away_so_are_its_threads_and_nothing_else(trio: Trio, name: str) -> None:
    kept = {node.name: answer(node, "one").id for node in trio.living}
    rooms = {node.name: client(node).conversations.create().id for node in trio.living}
    trio.kill(name, others_know=name != "b")
    for node in trio.living:
        for path in (f"/v1/responses/{kept[name]}", f"/v1/conversations/{rooms[name]}"):
            assert f"'{name}'" in away(node, path) or f'"{name}"' in away(node, path)
        with pytest.raises(openai.InternalServerError, match=f"{name}.*holds this thread"):
            answer(node, "two", previous_response_id=kept[name])
        for other, response_id in kept.items():
            if other != name:
                assert client(node).responses.retrieve(response_id).id == response_id
                answer(node, "two", previous_response_id=response_id)
        assert answer(node, "new").output_text
    for node in trio.living:
        node.awaits_states(**{name: "dead"})
        told = " ".join(node.get("/v1/cluster")["degraded"])
        assert f"holder_away: {name} is dead" in told
        assert "history_is_local" in told
    trio.start(name).awaits_ready()
    trio.all_agree()
    for node in trio.living:
        assert client(node).responses.retrieve(kept[name]).id == kept[name]
        answer(node, "two", previous_response_id=kept[name])
        assert answer(node, "in it", conversation=rooms[name]).output_text


def test_a_memory_is_asked_like_a_file(trio: Trio) -> None:
    with_memory = trio.start("d", "--store", "memory:")
    with_memory.awaits_ready()
    trio.all_agree()
    one = answer(with_memory, "one")
    two = answer(trio["a"], "two", previous_response_id=one.id)
    three = answer(with_memory, "three", previous_response_id=answer(trio["b"], "b").id)
    for response in (one, two, three):
        same_for_all(trio.living, response)
    trio.stop("d")
    assert "d" in away(trio["a"], f"/v1/responses/{two.id}")
    assert client(trio["a"]).responses.retrieve(three.id).id == three.id
