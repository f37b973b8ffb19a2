"""What a prompt costs whose form, and then whose text, was seen before: counted in calls, which no machine changes."""

import asyncio
import cProfile
import json
import pstats
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from smg_node.core.generation.request import GenerateRequest, TokenIds
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.options import ReaderOptions
from smg_node.fleet.models.format_recognition import Recognition
from smg_node.fleet.models.model_options import Labels, ModelSettings
from smg_node.fleet.models.served_model import ServedModel
from smg_node.native.token_ids import COMPILED, pack_ids
from smg_node.parsers.selection.recognition import Clues
from smg_node.pipeline.generation.call_plan import plan
from smg_node.pipeline.prompt.preparation import Prepared, Preparer
from smg_node.prompts.jinja.chat_template import ChatTemplate
from smg_node.system_clock import SystemClock
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.caches.exact_cache import ExactCache, ExactLimits
from support.engines.fake_engine import abilities, card
from support.models.bytewise_tokenizer import BytewiseTokenizer
from support.models.prompt_corpus import renderer, source

# As many again as there are: what fails here is a form, a cache or a short way that is no longer taken.
READ_MAX, PREPARE_MAX, PLAN_MAX = 18, 58, 38
READER = ChatReader(ReaderOptions())


class CountingTokenizer(BytewiseTokenizer):
    """Counts what it is asked to encode."""

    asked = 0

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        self.asked += 1
        return super().encode(text, add_special_tokens=add_special_tokens)


class Path:
    """A model, and what brings prompts to it."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.tokenizer = CountingTokenizer()
        self.hold: Any = SimpleNamespace(card=card(context=4096), abilities=abilities())
        self.preparer = Preparer(clock=SystemClock(), threads=threads)
        recognition = Recognition(Clues(("tiny",)))
        self.model = ServedModel(
            name="tiny",
            created_s=1,
            tokenizer=self.tokenizer,
            encoder=CachedEncoder(self.tokenizer, ExactCache(ExactLimits(99, 1 << 20), seed=1)),
            renderer=renderer(source("chatml")),
            recognition=recognition,
            printing=recognition.printing(ModelSettings(), Labels()),
            settings=ModelSettings(),
            bundle_digest="d",
            bundle_context=None,
        )

    def prepared(self, request: GenerateRequest) -> Sequence[Prepared]:
        soon = self.preparer.soon(request, self.model)
        if isinstance(soon, tuple):
            return soon
        assert soon is None, "these texts are short"
        found: list[Prepared] = at_once(self.preparer.prompts(request, self.model))
        return found

    def planned(self, request: GenerateRequest, prepared: Sequence[Prepared]) -> Any:
        return plan(
            request,
            prepared,
            self.model,
            self.hold,
            generation_id="a" * 32,
            created_s=1,
            new_id=lambda _name, at: f"call_{at}",
        )


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Return what `work` comes to, which waits for nobody."""
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    return ended.value.value


def body(text: str) -> bytes:
    said = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 8}
    return json.dumps(said).encode()


def read(raw: bytes) -> GenerateRequest:
    reading = READER.read_plain(raw)
    assert reading is not None
    return reading.request


def calls(work: Callable[[], object]) -> int:
    """Return how many functions `work` calls."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # it is there


@pytest.mark.parametrize("seen", [False, True], ids=["a new text", "a text seen before"])
def test_a_prompt_of_a_known_form_takes_the_short_ways(
    seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as threads:
        path = Path(threads)
        for text in ("One", "Two", "Three"):
            request = read(body(text))
            path.planned(request, path.prepared(request))
        monkeypatch.setattr(ChatTemplate, "render", None)
        asked = path.tokenizer.asked
        wanted = body("Three" if seen else "Four")
        request = read(wanted)
        (prepared,) = found = path.prepared(request)
        assert path.tokenizer.asked == asked + (not seen)
        # Without a compiler only what comes again is packed.
        assert prepared.packed == (pack_ids(prepared.ids) if seen or COMPILED else b"")
        assert calls(lambda: read(wanted)) <= READ_MAX
        assert calls(lambda: path.prepared(request)) <= PREPARE_MAX
        assert calls(lambda: path.planned(request, found)) <= PLAN_MAX


def test_a_long_prompt_is_prepared_without_a_thread_once_it_is_known() -> None:
    with ThreadPoolExecutor(1) as threads:
        path = Path(threads)
        request = read(body("word " * 20_000))
        for _ in range(3):
            asyncio.run(path.preparer.prompts(request, path.model))
        (prepared,) = path.prepared(request)
        assert len(prepared.ids) > 100_000
        assert prepared.packed == pack_ids(prepared.ids)
