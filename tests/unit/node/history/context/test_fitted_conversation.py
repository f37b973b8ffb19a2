"""How much of a realtime conversation fits, and how seldom its prompt loses its beginning."""

import itertools
from typing import Any

import pytest

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import ChatPrompt, Prompt
from smg_node.dialects.realtime.config.retention import Retention
from smg_node.history.context.fitted_conversation import FittedConversation, fitted_conversation
from support.answers.generations import text, whole
from support.answers.realtime_client import RealtimeClient


class WordCount:
    """A model whose tokens are words, and each turn one more; it keeps count of what it counted."""

    name = "m"

    def __init__(self, context: int | None) -> None:
        self.context = context
        self.counted = 0

    def check(self, where: str) -> None:
        """Return: words can be counted."""

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        assert isinstance(prompt, ChatPrompt)
        self.counted += 1
        return sum(len(str(turn.content).split()) + 1 for turn in prompt.turns)


def words(count: int, letter: str = "w") -> str:
    return " ".join([letter] * count)


async def turn(
    client: RealtimeClient, measure: WordCount, question: str, *, answer: int = 5
) -> FittedConversation:
    """Ask, fit, tell the session what went, answer in so many words; return what fitted."""
    client.say(question)
    start = client.ask()
    fitted = await fitted_conversation(start.ask, start.history, start.truncation, measure)
    if start.truncation is not None and start.truncation.ratio < 1:
        client.session.left_out(start.response_id, fitted.left_out)
    client.feed(start.response_id, whole(text(words(answer, "a"))))
    return fitted


def first_of(fitted: FittedConversation) -> str:
    prompt = fitted.request.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return next(str(turn.content) for turn in prompt.turns if turn.role != "system")


def configured(**session: Any) -> RealtimeClient:
    client = RealtimeClient()
    client.send("session.update", session={"type": "realtime", **session})
    return client


async def test_a_ratio_keeps_the_beginning_of_a_prompt_for_several_turns() -> None:
    rule = {
        "type": "retention_ratio",
        "retention_ratio": 0.8,
        "token_limits": {"post_instructions": 200},
    }
    client = configured(truncation=rule, instructions=words(40, "i"))
    measure = WordCount(10_000)
    begins, sizes = [], []
    for number in range(50):
        fitted = await turn(client, measure, f"q{number} w", answer=3)
        begins.append(first_of(fitted))
        sizes.append(await measure.count(fitted.request.prompts[0]))
    # Instructions and the turn around them are not part of what the rule counts, nor is the message they are counted with.
    assert max(sizes) <= 200 + 41 + 2
    cuts = [place for place in range(1, 50) if begins[place] != begins[place - 1]]
    assert cuts
    assert all(later - earlier >= 5 for earlier, later in itertools.pairwise(cuts))
    assert all(begin.startswith("q") for begin in begins), "cut between groups"
    assert len(client.order) == 100, "nothing is gone from the conversation"


async def test_auto_leaves_out_no_more_than_must_go() -> None:
    client = configured(max_output_tokens=100)
    measure = WordCount(160)
    for number in range(12):
        fitted = await turn(client, measure, f"q{number} {words(7)}")
        tokens = await measure.count(fitted.request.prompts[0])
        # Sixty are left for the prompt. A group has 15: nine of the question, six of the answer; the last has no answer.
        assert tokens == min(9 + 15 * number, 54)
        assert first_of(fitted).startswith(f"q{max(number - 3, 0)} ")


async def test_what_surely_fits_is_not_counted() -> None:
    client = configured(instructions=words(40))
    measure = WordCount(100_000)
    for number in range(20):
        assert (await turn(client, measure, f"q{number}")).left_out == ()
    assert measure.counted == 0
    # An answer that may be longer than the context takes no room away.
    client.send("session.update", session={"type": "realtime", "max_output_tokens": 200_000})
    assert (await turn(client, measure, "more")).left_out == ()


async def test_a_question_that_is_too_long_by_itself_is_refused() -> None:
    client = configured(max_output_tokens=100)
    client.say("old")
    start_of = client.say(words(90))
    assert start_of
    start = client.ask()
    with pytest.raises(SmgError) as caught:
        await fitted_conversation(start.ask, start.history, start.truncation, WordCount(160))
    assert caught.value.code == "context_length_exceeded"


async def test_the_newest_group_stays_though_it_is_longer_than_the_rule_lets_stay() -> None:
    client = configured()
    client.say("old")
    client.say(words(90))
    start = client.ask()
    rule = Retention(0.5, 50)
    fitted = await fitted_conversation(start.ask, start.history, rule, WordCount(10_000))
    assert fitted.left_out == (0,)


async def test_nothing_is_left_out_where_that_is_disabled_or_nobody_can_count() -> None:
    client = configured(truncation="disabled")
    for number in range(9):
        assert (await turn(client, WordCount(20), f"q{number} {words(9)}")).left_out == ()
    client = configured()
    measure = WordCount(None)
    for number in range(9):
        assert (await turn(client, measure, f"q{number} {words(9)}")).left_out == ()
    assert measure.counted == 0


class Uncounted(WordCount):
    """A model whose tokens nobody here can count."""

    def check(self, where: str) -> None:
        """Raise: its tokenizer is elsewhere."""
        raise unsupported("tokens cannot be counted", where)


async def test_a_ratio_is_refused_where_nobody_can_count() -> None:
    client = configured()
    client.say("hi")
    start = client.ask()
    with pytest.raises(SmgError) as caught:
        await fitted_conversation(start.ask, start.history, Retention(0.8), Uncounted(None))
    assert caught.value.where == "session.truncation"
    await fitted_conversation(start.ask, start.history, start.truncation, Uncounted(None))
