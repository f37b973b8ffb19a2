"""Prompts of a session whose conversation outgrows the context of its model."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Prompt
from smg_node.dialects.realtime.effects import Start
from smg_node.http.ports.tokens import Tokenized
from smg_node.http.routes.sockets.session_prompts import SessionMeasure, SessionPrompts
from support.answers.generations import text, whole
from support.answers.realtime_client import RealtimeClient
from support.http.fake_tokens import FakeTokens

RATIO = {"type": "retention_ratio", "retention_ratio": 0.5}


class Words(FakeTokens):
    """Counts words of all turns, and how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        self.asked += 1
        assert isinstance(prompt, ChatPrompt)
        count = sum(len(str(turn.content).split()) for turn in prompt.turns)
        return Tokenized([0] * count, count)


def asked(turns: int, **session: Any) -> tuple[RealtimeClient, Start]:
    """Return a session after so many turns, and its wish for the next answer."""
    client = RealtimeClient()
    client.send("session.update", session={"type": "realtime", "max_output_tokens": 10, **session})
    for at in range(turns):
        client.say(f"question {at} " + "w " * 20)
        client.feed(client.ask().response_id, whole(text(f"answer {at}")))
    client.say("the last question")
    return client, client.ask()


def turns_in(request: GenerateRequest) -> int:
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt)
    return len(prompt.turns)


async def test_what_surely_fits_is_not_measured() -> None:
    client, start = asked(3)
    words = Words()
    request = await SessionPrompts(SessionMeasure("m", 100_000, words)).request(
        start, client.session
    )
    assert (turns_in(request), words.asked) == (7, 0)
    assert request.routing_key == client.session.id


@pytest.mark.parametrize(("rule", "stays_away"), [("auto", False), (RATIO, True)])
async def test_what_has_no_room_is_left_out_by_a_ratio_for_good(
    rule: object, stays_away: bool
) -> None:
    client, start = asked(20, truncation=rule)
    prompts = SessionPrompts(SessionMeasure("m", 200, Words()))
    request = await prompts.request(start, client.session)
    assert 1 < turns_in(request) < 20
    client.feed(start.response_id, whole(text("x")))
    assert (len(client.ask().history) < len(start.history)) is stays_away


async def test_a_model_that_nobody_counts_for_takes_all_that_has_no_other_rule() -> None:
    client, start = asked(20)
    uncounted = SessionPrompts(SessionMeasure("m", 200, None))
    assert turns_in(await uncounted.request(start, client.session)) == 41
    client, start = asked(20, truncation=RATIO)
    with pytest.raises(SmgError) as refused:
        await uncounted.request(start, client.session)
    assert refused.value.where == "session.truncation"
