"""From a prompt to token ids: what the template could not honour is told."""

import asyncio
import json
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    TextPrompt,
    Thinking,
    TokenIds,
    Turn,
)
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.options import ReaderOptions
from smg_node.pipeline.prompt.preparation import RENDER_IN_THREAD_ABOVE, Preparer
from smg_node.system_clock import SystemClock
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.caches.exact_cache import ExactCache, ExactLimits
from support.models.bytewise_tokenizer import BytewiseTokenizer
from support.models.prompt_corpus import renderer, source

READER = ChatReader(ReaderOptions())
_PRINTS_ANY_EFFORT = "Reasoning: {{ reasoning_effort or 'medium' }}{% for m in messages %}{{ m.content }}{% endfor %}"


def prepared(prompt: ChatPrompt) -> Any:
    encoder = CachedEncoder(BytewiseTokenizer())
    model: Any = SimpleNamespace(
        renderer=renderer(_PRINTS_ANY_EFFORT), encoder=encoder, name="m", why_no_template=""
    )
    with ThreadPoolExecutor(1) as threads:
        preparer = Preparer(clock=SystemClock(), threads=threads)
        return asyncio.run(preparer.prompt(prompt, model))


@pytest.mark.parametrize("text", ["Hi", "x" * (RENDER_IN_THREAD_ABOVE + 1)])
def test_a_wish_that_the_template_cannot_honour_is_named(text: str) -> None:
    turns = (Turn("user", text),)
    wish = Thinking("none", where="reasoning.effort")
    least = prepared(ChatPrompt(turns, thinking=wish))
    assert least.text == "Reasoning: low" + text
    assert least.ignored == ("reasoning.effort",)
    much = prepared(ChatPrompt(turns, thinking=Thinking("max")))
    assert (much.text, much.ignored) == ("Reasoning: high" + text, ())


class Counted(BytewiseTokenizer):
    """Knows in which round of the loop it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0
        self.asked: list[int] = []

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        self.asked.append(self.rounds)
        return super().encode(text, add_special_tokens=add_special_tokens)


@pytest.mark.parametrize(
    ("size", "alike", "rounds"),
    [(100, False, 1), (13_000, False, 2), (20_000, False, 4), (20_000, True, 1)],
)
def test_texts_that_take_a_while_are_encoded_in_rounds(size: int, alike: bool, rounds: int) -> None:
    tokenizer = Counted()
    encoder = CachedEncoder(tokenizer, ExactCache(ExactLimits(entries=16, bytes=1 << 22), seed=1))
    model: Any = SimpleNamespace(encoder=encoder, name="m")
    prompts = [TextPrompt(str(0 if alike else number) * size) for number in range(4)]

    async def story() -> list[Any]:
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=SystemClock(), threads=threads)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(preparer.prompt(one, model)) for one in prompts]
                while not all(task.done() for task in tasks):
                    tokenizer.rounds += 1
                    await asyncio.sleep(0)
            return [task.result() for task in tasks]

    told = asyncio.run(story())
    assert [len(one.ids) for one in told] == [size + 1] * 4
    assert len(set(tokenizer.asked)) == rounds


@pytest.mark.parametrize("size", [20_000, 60_000])
def test_a_plain_chat_of_some_length_is_waited_for_once(size: int) -> None:
    """In its turn, or in a thread; from then on it is known at once."""
    tokenizer = Counted()
    encoder = CachedEncoder(tokenizer, ExactCache(ExactLimits(entries=16, bytes=1 << 22), seed=1))
    made = renderer(source("chatml"))
    model: Any = SimpleNamespace(renderer=made, encoder=encoder, name="m", why_no_template="")
    request = _plain("x" * size)

    async def story() -> list[Any]:
        with ThreadPoolExecutor(1) as threads:
            preparer = Preparer(clock=SystemClock(), threads=threads)
            for text in ("One", "Two"):
                # A form is known when it comes again.
                await preparer.prompts(_plain(text), model)
            later = preparer.soon(request, model)
            assert isinstance(later, Awaitable)
            found = await later
            soon = preparer.soon(request, model)
            assert isinstance(soon, tuple)
            return [found[0], soon[0], (await preparer.prompts(request, model))[0]]

    waited, at_once, long_way = asyncio.run(story())
    assert waited.text == at_once.text == long_way.text
    assert waited.ids == at_once.ids == long_way.ids
    assert len(tokenizer.asked) == 3


def _plain(text: str) -> GenerateRequest:
    said = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 8}
    reading = READER.read_plain(json.dumps(said).encode())
    assert reading is not None
    return reading.request
