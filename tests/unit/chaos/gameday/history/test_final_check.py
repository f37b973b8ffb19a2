"""How the gameday holds what is there against what people were told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.load import Balancer
from smg_chaos.gameday.history import chat_clients as callers
from smg_chaos.gameday.history.chat_clients import Callers, Kept, Ledger
from smg_chaos.gameday.history.final_check import Found, compare, figures, text_of
from smg_chaos.gameday.history.response_request import Answer, last_of
from smg_chaos.gameday.lab.lab import Lab

ROOM = "conv_1"


def kept(words: str, conversation: str = ROOM) -> Kept:
    return Kept({"id": f"resp_{words}"}, words, conversation, "n0")


def compared(told: str, refused: str, there: str) -> Found:
    ledger = Ledger(kept=[kept(word) for word in told])
    ledger.kept.append(kept("elsewhere", "conv_2"))
    ledger.refused = [(ROOM, word) for word in refused]
    found = Found()
    compare(ROOM, list(there), ledger, found)
    return found


@pytest.mark.parametrize(
    ("told", "refused", "there", "expected"),
    [
        ("abc", "xy", "abc", (0, 0, 0, 0)),
        # What nobody was told may be there, or not.
        ("abc", "", "abqc", (0, 0, 0, 0)),
        ("abc", "", "ac", (1, 0, 0, 0)),
        ("abc", "", "abcb", (0, 1, 0, 1)),
        ("abc", "x", "abxc", (0, 0, 1, 0)),
        ("abc", "", "bac", (0, 0, 0, 1)),
        ("", "", "", (0, 0, 0, 0)),
    ],
)
def test_a_conversation_is_held_against_what_was_told(
    told: str, refused: str, there: str, expected: tuple[int, int, int, int]
) -> None:
    found = compared(told, refused, there)
    assert (found.unlisted, found.twice, found.refused, found.out_of_order) == expected


def test_every_way_to_be_wrong_is_a_figure_that_is_missed() -> None:
    ledger = Ledger(kept=[kept("a")], took_s=[0.1, 0.2], denied=1, failed=["odd"])
    found = Found(["resp_1"], ["resp_2"], unlisted=1, twice=1, refused=1, out_of_order=1)
    wrong = [one for one in figures("redis", ledger, found) if one.limit is not None]
    assert len(wrong) == 8
    assert not any(one.is_met for one in wrong)
    right = figures("redis", Ledger(kept=[kept("a")], took_s=[0.1]), Found())
    assert all(one.is_met for one in right)


def test_a_stream_is_what_its_last_event_says() -> None:
    frames = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    ]
    told = b"".join(
        b"event: %b\ndata: %b\n\n" % (str(one["type"]).encode(), json.dumps(one).encode())
        for one in frames
    )
    assert last_of(told + b"data: [DONE]\n\n") == {"id": "r", "status": "completed"}
    with pytest.raises(ValueError, match="no end"):
        last_of(told.partition(b"event: response.completed")[0])


def test_a_message_is_its_text() -> None:
    assert text_of({"content": "a b"}) == "a b"
    assert text_of({"content": [{"text": "a"}, {"text": " b"}]}) == "a b"


class Agent(SmgAgent):
    def __init__(self, name: str) -> None:
        self.name = name


Said = Answer | ConnectionError


async def chatted(
    patch: pytest.MonkeyPatch, kind: str, *answers: Said, dying: str = ""
) -> tuple[Ledger, list[Mapping[str, Any]]]:
    """Let one person of a kind ask until there are no answers left."""
    nodes = [Agent("n0")]
    left, asked = list(answers), []
    people = Callers(Lab.__new__(Lab), Balancer(nodes), 1, now_s=lambda: 0.0, dying={dying} - {""})

    async def ask(
        _lab: Lab, _node: SmgAgent, _method: str, _path: str, body: Mapping[str, Any]
    ) -> Answer:
        asked.append(body)
        said = left.pop(0)
        if not left:
            people.stop()
        if isinstance(said, ConnectionError):
            raise said
        return said

    patch.setattr(callers, "ask", ask)
    patch.setattr(callers, "KINDS", (kind,))
    patch.setattr(callers, "_BETWEEN_S", 0.0)
    await people.run([ROOM if kind == "conversation" else ""])
    return people.ledger, asked


def fine(name: str, *, spooled: bool = False) -> Answer:
    return Answer(200, {"id": name, "status": "completed"}, spooled)


def refusal(status: int, code: str) -> Answer:
    return Answer(status, {"error": {"code": code}})


async def test_what_was_acknowledged_is_continued_and_never_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, unknown = refusal(503, "store_unavailable"), refusal(400, "previous_response_not_found")
    ledger, asked = await chatted(
        monkeypatch, "chain", fine("r1"), away, unknown, fine("r2", spooled=True), fine("r3")
    )
    assert [one.said["id"] for one in ledger.kept] == ["r1", "r2", "r3"]
    assert [body.get("previous_response_id") for body in asked] == [None, "r1", "r1", "r1", "r2"]
    assert len({body["input"] for body in asked}) == 5
    assert (ledger.spooled, len(ledger.refused), ledger.denied, ledger.failed) == (1, 1, 1, [])


async def test_who_wants_nothing_kept_is_never_refused_for_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = refusal(503, "store_unavailable")
    ledger, asked = await chatted(monkeypatch, "forgotten", fine("r1"), away)
    assert all(body["store"] is False for body in asked)
    assert (ledger.forgotten, len(ledger.failed), ledger.kept) == (1, 1, [])


@pytest.mark.parametrize(("dying", "expected"), [("n0", (1, 0)), ("", (0, 1))])
async def test_only_a_node_that_dies_may_drop_an_answer(
    monkeypatch: pytest.MonkeyPatch, dying: str, expected: tuple[int, int]
) -> None:
    lost = ConnectionError("reset")
    ledger, _ = await chatted(monkeypatch, "conversation", lost, dying=dying)
    assert (ledger.lost, len(ledger.failed)) == expected


@pytest.mark.parametrize("answer", [refusal(500, "x"), refusal(503, "x"), Answer(200, {"id": "r"})])
async def test_anything_else_went_wrong(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    ledger, _ = await chatted(monkeypatch, "streamed", answer)
    assert len(ledger.failed) == 1
    assert ledger.kept == []
