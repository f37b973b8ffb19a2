"""A conversation that grows keeps the beginning of its prompt, in whatever form its client sends it."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.prompts.renderer import Renderer
from support.clients.claude_code import DEFERRED, TOOLS, Answer, Conversation, Question
from support.models.prompt_corpus import NOW, renderer, source

READER = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
WORDS = st.text("ab \n<", min_size=1, max_size=6).filter(lambda text: not text.isspace())
NOTES = st.lists(WORDS, max_size=2).map(tuple)
CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), st.text("ab\n", max_size=4)), max_size=3)


@st.composite
def answers(draw: st.DrawFn, *, thinks: bool) -> tuple[Answer, ...]:
    """Return what is answered to one question: calls of tools, and a text at the end."""
    said = []
    for _ in range(draw(st.integers(0, 3))):
        calls = tuple(draw(CALLS))
        found = tuple(draw(st.lists(st.sampled_from(DEFERRED), max_size=2, unique=True)))
        if calls or found:
            thought = draw(WORDS) if thinks and draw(st.booleans()) else ""
            text = draw(WORDS) if draw(st.booleans()) else ""
            said.append(Answer(text, thought, calls, found, draw(NOTES)))
    return (*said, Answer(draw(WORDS)))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Return a conversation. Templates forget thoughts behind the next question, so only one question has any."""
    count = draw(st.integers(1, 3))
    questions = [
        Question(draw(WORDS), draw(answers(thinks=count == 1)), draw(NOTES)) for _ in range(count)
    ]
    return Conversation(questions)


TEMPLATES = {name: renderer(source(name)) for name in ("chatml", "llama", "both_forms", "deepseek")}


def prompt_of(body: dict[str, Any]) -> ChatPrompt:
    prompt = READER.read(body).request.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt


def without_tail(template: Renderer, prompt: ChatPrompt) -> str:
    return template.render(replace(prompt, add_generation_prompt=False), now=NOW)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
@given(conversation=conversations(), seed=st.integers(0, 2**32))
def test_each_prompt_begins_with_the_one_before(
    name: str, conversation: Conversation, seed: int
) -> None:
    template = TEMPLATES[name]
    before = ""
    for body in conversation.requests(Random(seed)):
        prompt = prompt_of(body)
        whole = template.render(prompt, now=NOW)
        assert whole.startswith(before)
        before = without_tail(template, prompt)
        assert whole.startswith(before)


@given(conversation=conversations(), seeds=st.tuples(st.integers(), st.integers()))
def test_the_form_of_a_body_makes_no_difference_to_its_turns(
    conversation: Conversation, seeds: tuple[int, int]
) -> None:
    first, second = (list(conversation.requests(Random(seed))) for seed in seeds)
    for one, other in zip(first, second, strict=True):
        assert prompt_of(one) == prompt_of(other)


def test_two_sessions_with_different_questions_share_system_and_tools() -> None:
    prompts = []
    for text in ("one", "two"):
        body = next(Conversation([Question(text, (Answer("x"),))]).requests(Random(text)))
        prompts.append(without_tail(TEMPLATES["chatml"], prompt_of(body)))
    first, second = prompts
    shared = first.index("one")
    assert first != second
    assert second.startswith(first[:shared])
    assert "You help with code." in first[:shared]
    assert "x-anthropic-billing-header" not in first
    assert '"name": "Write"' in first[:shared]
    assert "DeferredToolPlaceholder" not in first
