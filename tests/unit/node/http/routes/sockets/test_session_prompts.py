"""Prompts of a session whose conversation outgrows the context of its model."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Prompt, Turn
from smg_node.dialects.realtime.effects import Start
from smg_node.http.ports.tokens import Tokenized
from smg_node.http.routes.sockets.session_prompts import SessionPrompts
from support.answers.generations import text, whole
from support.answers.realtime_client import RealtimeClient
from support.http.fake_tokens import FakeTokens


class Words(FakeTokens):
    """Counts words of all turns, and how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        self.asked += 1
        count = len(words_of(prompt))
        return Tokenized([0] * count, count)


def words_of(prompt: Prompt) -> list[str]:
    assert isinstance(prompt, ChatPrompt)
    said: list[str] = []
    for turn in prompt.turns:
        content: Any = turn.content
        said += (content if isinstance(content, str) else repr(content)).split()
    return said


def turns_in(request: GenerateRequest) -> Sequence[Turn]:
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns


def asked(turns: int, **session: Any) -> tuple[RealtimeClient, Start]:
    """Return a session after so many turns, and its wish for the next answer."""
    client = RealtimeClient()
    update = {
        "type": "realtime",
        "instructions": "one two three",
        "max_output_tokens": 10,
        **session,
    }
    client.send("session.update", session=update)
    for at in range(turns):
        client.say(f"question {at} " + "w " * 20)
        client.feed(client.ask().response_id, whole(text(f"answer {at}")))
    client.say("the last question")
    return client, client.ask()


async def made(
    context: int | None, client: RealtimeClient, start: Start
) -> tuple[GenerateRequest, Words]:
    words = Words()
    return await SessionPrompts(words, context).request(start, client.session), words


async def test_what_surely_fits_is_not_measured() -> None:
    client, start = asked(3)
    for context in (None, 100_000):
        request, words = await made(context, client, start)
        assert (len(turns_in(request)), words.asked) == (8, 0)
        assert request.routing_key == client.session.id


async def test_what_fits_once_it_is_measured_stays_whole() -> None:
    client, start = asked(3)
    request, words = await made(150, client, start)
    assert (len(turns_in(request)), words.asked) == (8, 1)


async def test_the_oldest_turns_go_and_no_more_than_must() -> None:
    client, start = asked(20)
    request, _ = await made(200, client, start)
    [prompt] = request.prompts
    count = len(words_of(prompt))
    assert 200 - 10 - 40 < count <= 200 - 10
    shown = json.dumps([repr(turn) for turn in turns_in(request)])
    assert "one two three" in shown
    assert "the last question" in shown
    assert "question 19 " in shown
    assert "question 0 " not in shown
    # The next answer may look anew.
    client.feed(start.response_id, whole(text("x")))
    assert len(client.ask().history) > len(start.history)


async def test_by_a_ratio_more_goes_at_once_and_does_not_come_back() -> None:
    ratio = {
        "type": "retention_ratio",
        "retention_ratio": 0.5,
        "token_limits": {"post_instructions": 150},
    }
    client, start = asked(20, truncation=ratio)
    request, _ = await made(10_000, client, start)
    count = len(words_of(request.prompts[0]))
    assert 30 < count <= 3 + 75
    client.feed(start.response_id, whole(text("x")))
    client.say("more")
    again = client.ask()
    assert len(again.history) < 10
    request, _ = await made(10_000, client, again)
    assert len(words_of(request.prompts[0])) > count, "nothing more goes for some turns"


async def test_without_truncation_nothing_is_left_out() -> None:
    client, start = asked(20, truncation="disabled")
    request, words = await made(200, client, start)
    assert (len(turns_in(request)), words.asked) == (42, 0)


async def test_what_is_too_long_by_itself_is_refused() -> None:
    client, start = asked(2)
    with pytest.raises(SmgError) as refused:
        await made(14, client, start)
    assert refused.value.code == "context_length_exceeded"
