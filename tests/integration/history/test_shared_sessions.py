"""Three nodes with one store, and every call to any of them: nobody could tell them from one node.

The official client is the judge: what comes over the wire is validated, accumulated and compared, call by call.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from support.answers.random_items import item_lists, sent
from support.clients.agent_session import MODEL, WHOLE, Agent
from support.clients.background_session import SLOW, Absent
from support.clients.comparable_session import Retelling
from support.clients.stream_judge import TERMINAL
from support.processes.shared_store_nodes import (
    EMBEDDED,
    STORES,
    Place,
    SharedStore,
    one_node,
    running_echoes,
    running_halves,
    three_nodes,
)

pytestmark = pytest.mark.integration

SEED = int(os.environ.get("SMG_SESSION_SEED") or secrets.randbits(32))
"""Who is asked; it is said with every failure, and can be given."""


@dataclass(frozen=True, slots=True)
class Told:
    """A session in the foreground, and one in the background."""

    calls: Sequence[str]
    facts: Sequence[str]


def calls_of(place: Place) -> Sequence[str]:
    heard = len(place.judge.heard)
    Agent(place.anybody(SEED)).work()
    place.judge.check()
    return Retelling().of(place.judge.heard[heard:])


def told_by(place: Place) -> Told:
    calls = calls_of(place)
    absent, retelling = Absent(place.anybody(SEED), Random(SEED)), Retelling()
    facts = [retelling.fact(fact) for fact in absent.work()]
    place.judge.check()
    return Told(calls, facts)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
    with running_echoes(tmp_path_factory.mktemp("engines")) as running:
        yield running


@pytest.fixture(scope="module")
def told_by_one(workers: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Both sessions as one node with its own memory tells them."""
    with one_node(tmp_path_factory.mktemp("alone"), workers) as place:
        return told_by(place)


@pytest.fixture(scope="module", params=STORES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedStore]:
    with STORES[request.param](tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def place(
    workers: Sequence[str], store: SharedStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with three_nodes(tmp_path_factory.mktemp("nodes"), workers, store) as running:
        yield running


@pytest.fixture
def anybody(place: Place) -> Iterator[Callable[[], OpenAI]]:
    """Yield a choice of nodes; whatever was said until the end must have been right."""
    clients = place.anybody(SEED)
    yield lambda: next(clients)
    place.judge.check()


def test_long_sessions_read_as_on_a_single_node(place: Place, told_by_one: Told) -> None:
    check_same(told_by(place), told_by_one)


def check_same(told: Told, single: Told) -> None:
    assert len(told.calls) >= 30
    pairs = [
        *zip(told.calls, single.calls, strict=True),
        *zip(told.facts, single.facts, strict=True),
    ]
    for number, (mine, other) in enumerate(pairs):
        assert mine == other, f"{number} with SMG_SESSION_SEED={SEED}"


def test_long_sessions_read_the_same_where_every_node_has_a_store_of_its_own(
    workers: Sequence[str], told_by_one: Told, tmp_path: Path
) -> None:
    with three_nodes(tmp_path, workers, EMBEDDED) as place:
        check_same(told_by(place), told_by_one)


def test_a_session_on_a_pair_of_workers_reads_as_on_one(told_by_one: Told, tmp_path: Path) -> None:
    with running_halves(tmp_path) as pair, one_node(tmp_path / "node", pair) as place:
        assert calls_of(place) == told_by_one.calls


def test_what_was_told_is_shown_the_same_by_every_node(place: Place) -> None:
    kept = dict(place.judge.kept)
    assert len(kept) >= 20
    for client in place.clients():
        for response_id in kept:
            try:
                client.responses.retrieve(response_id)
            except openai.NotFoundError:
                assert ("DELETE", response_id) in _deleted(place)
    place.judge.check()


def _deleted(place: Place) -> set[tuple[str, str]]:
    heard = place.judge.heard
    return {(one.method, one.path.rpartition("/")[2]) for one in heard if one.status == 200}


def test_what_is_not_to_be_stored_leaves_nothing_behind(
    anybody: Callable[[], OpenAI], store: SharedStore
) -> None:
    anybody().responses.create(model=MODEL, input="kept")
    before = store.rows()
    for streamed in (False, True):
        made = anybody().responses.create(
            model=MODEL, input="quiet", store=False, stream=streamed, max_output_tokens=4
        )
        if not isinstance(made, Response):
            for _ in made:
                pass
    assert store.rows() == before > 0


def test_responses_at_once_on_one_conversation_are_all_kept_and_never_mixed(
    anybody: Callable[[], OpenAI],
) -> None:
    room = anybody().conversations.create().id
    clients = [anybody() for _ in range(24)]

    def one(number: int) -> Response:
        asked: list[Any] = [{"role": "user", "content": f"{word}{number}"} for word in "ab"]
        return clients[number].responses.create(
            model=MODEL, input=asked, conversation=room, max_output_tokens=4
        )

    with ThreadPoolExecutor(8) as threads:
        answers = {made.output[0].id: made for made in threads.map(one, range(24))}
    items = [item.id for item in anybody().conversations.items.list(room, order="asc", limit=7)]
    assert len(items) == len(set(items)) == 3 * 24
    for at in range(0, len(items), 3):
        made = answers.pop(items[at + 2])
        own = anybody().responses.input_items.list(made.id, order="asc")
        assert [row.id for row in own] == items[at : at + 2]
    assert not answers


def test_items_of_every_type_come_back_from_another_node_as_they_went_in(
    place: Place,
) -> None:
    # Nobody judges these: they have keys of their own, and types that only others know.
    clients = place.anybody(SEED, wire=place.unheard)
    for rows in item_lists(SEED, lists=24, items_max=20):
        room = next(clients).conversations.create().id
        path = f"/conversations/{room}/items"
        added = next(clients).post(path, body={"items": rows}, cast_to=dict[str, Any])
        listed = next(clients).get(f"{path}?order=asc&limit=100", cast_to=dict[str, Any])
        assert listed == added
        assert [bare(item) for item in added["data"]] == [sent(row) for row in rows]


def bare(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


# ── Tenants ──────────────────────────────────────────────────────────────────

Call = Callable[[OpenAI, str, str, str], object]
"""With a response, a conversation and an item in it."""
CALLS: dict[str, Call] = {
    "retrieve": lambda c, r, v, i: c.responses.retrieve(r),
    "stream again": lambda c, r, v, i: c.get(f"/responses/{r}?stream=true", cast_to=object),
    "input_items": lambda c, r, v, i: c.responses.input_items.list(r),
    "delete": lambda c, r, v, i: c.responses.delete(r),
    "cancel": lambda c, r, v, i: c.responses.cancel(r),
    "continue": lambda c, r, v, i: c.responses.create(
        model=MODEL, input="x", previous_response_id=r
    ),
    "count": lambda c, r, v, i: c.responses.input_tokens.count(
        model=MODEL, input="x", previous_response_id=r
    ),
    "compact": lambda c, r, v, i: c.responses.compact(model=MODEL, previous_response_id=r),
    "refer": lambda c, r, v, i: c.responses.create(
        model=MODEL, input=[{"type": "item_reference", "id": i}]
    ),
    "join": lambda c, r, v, i: c.responses.create(model=MODEL, input="x", conversation=v),
    "show": lambda c, r, v, i: c.conversations.retrieve(v),
    "rename": lambda c, r, v, i: c.conversations.update(v, metadata={"a": "b"}),
    "forget": lambda c, r, v, i: c.conversations.delete(v),
    "list": lambda c, r, v, i: c.conversations.items.list(v),
    "add": lambda c, r, v, i: c.conversations.items.create(
        v, items=[{"role": "user", "content": "x"}]
    ),
    "item": lambda c, r, v, i: c.conversations.items.retrieve(i, conversation_id=v),
    "drop": lambda c, r, v, i: c.conversations.items.delete(i, conversation_id=v),
}


def refusal(call: Call, client: OpenAI, *ids: str) -> tuple[int, str]:
    """Return how a call is refused, without the ids it was made with."""
    with pytest.raises(openai.APIStatusError) as found:
        call(client, *ids)
    text = found.value.response.text
    for number, one in enumerate(ids):
        text = text.replace(one, f"<{number}>")
    return found.value.status_code, text


@pytest.mark.parametrize("name", CALLS)
def test_what_is_another_tenants_is_refused_like_what_never_was(place: Place, name: str) -> None:
    mine, others = place.anybody(SEED), place.anybody(SEED, "other")
    made = next(mine).responses.create(model=MODEL, input="mine", max_output_tokens=4)
    room = next(mine).conversations.create(items=[{"role": "user", "content": "mine"}]).id
    item = next(iter(next(mine).conversations.items.list(room))).id
    assert item is not None
    never = tuple(f"{one[:-4]}0000" for one in (made.id, room, item))
    foreign = refusal(CALLS[name], next(others), made.id, room, item)
    assert foreign == refusal(CALLS[name], next(others), *never)
    assert foreign[0] in (400, 404)
    assert next(mine).responses.retrieve(made.id).output == made.output
    assert next(mine).conversations.retrieve(room).metadata == {}
    assert [row.id for row in next(mine).conversations.items.list(room)] == [item]
    place.judge.check()


# ── In the background ────────────────────────────────────────────────────────

RACES = 12


@pytest.fixture
def absent(place: Place) -> Iterator[Absent]:
    yield Absent(place.anybody(SEED), Random(SEED))
    place.judge.check()


def followed(client: OpenAI, response_id: str, after: int | None = None) -> list[dict[str, Any]]:
    return Absent(iter([client]), Random(0)).followed(response_id, after)


def test_all_nodes_tell_a_response_at_once_and_from_every_event_on(
    place: Place, absent: Absent
) -> None:
    made = absent.start("Tell all of us.", max_output_tokens=40)
    with ThreadPoolExecutor(6) as threads:
        told = [*threads.map(lambda client: followed(client, made.id), [*place.clients()] * 2)]
    assert all(one == told[0] for one in told), f"SMG_SESSION_SEED={SEED}"
    assert [event["sequence_number"] for event in told[0]] == [*range(len(told[0]))]
    assert absent.over(made.id).to_dict() == told[0][-1]["response"]
    for client in place.clients():
        for after in range(len(told[0])):
            assert followed(client, made.id, after) == told[0][after + 1 :]


def cancelled(client: OpenAI, response_id: str, wait_s: float) -> str | None:
    time.sleep(wait_s)
    return client.responses.cancel(response_id).status


def test_of_a_cancellation_and_the_end_one_wins_and_all_nodes_know_which(
    place: Place, absent: Absent
) -> None:
    chance, ends = Random(SEED), set()
    callers = place.clients()
    for _ in range(RACES):
        made = absent.start("Hurry.", max_output_tokens=8)
        waits = [chance.uniform(0, 0.2) for _ in callers]
        with ThreadPoolExecutor(3) as threads:
            answers = {*threads.map(cancelled, callers, [made.id] * 3, waits)}
        assert len(answers) == 1, f"SMG_SESSION_SEED={SEED}"
        final = absent.over(made.id)
        assert {final.status} == answers
        for client in callers:
            assert client.responses.retrieve(made.id).to_dict() == final.to_dict()
            told = followed(client, made.id)
            ends_told = [event for event in told if event["type"] in TERMINAL]
            assert ends_told == told[-1:]
            assert told[-1]["response"] == final.to_dict()
        ends.add(final.status)
    assert ends <= {"cancelled", "incomplete"}


def test_a_stream_goes_on_elsewhere_when_its_node_is_killed(place: Place) -> None:
    assert place.trio is not None
    place.judge.may_break = True
    doomed = place.nodes[0]
    seen = heard_until_killed(place.clients()[0], lambda: place.kill(doomed.name))
    response_id = seen[0]["response"]["id"]
    others = place.clients()
    rest = followed(others[0], response_id, seen[-1]["sequence_number"])
    numbers = [event["sequence_number"] for event in (*seen, *rest)]
    assert numbers == [*range(len(numbers))]
    assert rest[-1]["type"] == "response.failed"
    for client in others:
        assert followed(client, response_id) == [*seen, *rest]
        shown = client.responses.retrieve(response_id).to_dict()
        assert shown == rest[-1]["response"]
    place.judge.check()


def heard_until_killed(client: OpenAI, kill: Callable[[], None]) -> list[dict[str, Any]]:
    """Return what a client heard of a response before its node was killed, and perhaps a little later."""
    stream = client.responses.create(
        model=SLOW,
        input="Tell me everything.",
        background=True,
        stream=True,
        max_output_tokens=2_000,
        extra_body=WHOLE,
    )
    seen: list[dict[str, Any]] = []

    def hear() -> None:
        for event in stream:
            seen.append(event.to_dict())
            if len(seen) == 12:
                kill()

    with stream, pytest.raises(openai.APIError):
        hear()
    return seen
