"""Generations of prompts with pictures over in-memory engines; see `generation_bench` and `plain_pictures`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from smg_node.core.generation.request import ChatPrompt, MediaPart, Part, TextPart, Turn
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.engine import MediaCard
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.picture_rules import PictureRules, RuleBook, TokenTexts, picture_rules
from smg_node.media.pixels.arena import Arenas
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_making import MediaWorkshop
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.prompts.analysis.template_selection import TemplateTexts
from smg_node.prompts.clip_marks import ClipMark
from smg_node.prompts.renderer import Renderer, RenderOptions
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine, Script
from support.engines.generation_bench import Bench, bench_of
from support.media.plain_pictures import Kept, PlainFamily, PlainSource, no_clips

TEMPLATE = (
    "{%- for message in messages -%}{{ message.role }}:"
    "{%- if message.content is string -%}{{ message.content }}{%- else -%}"
    "{%- for part in message.content -%}"
    "{%- if part.type == 'image' -%}{{ '\\x07' }}{%- elif part.type == 'video' -%}{{ '\\x08' }}"
    "{%- else -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%};{%- endfor -%}"
)
"""Writes the byte 7 for a picture, 8 for a video; it knows no sound."""
VIDEOS = ClipMark("video", "\x08", "\x08")
SOUNDS = ClipMark("audio", "\x0b", "\x0b")
LEVELS = MediaCard(frozenset({"tensors"}), device_normalizes=True)


@dataclass
class Pictured:
    """A generator, and what its pictures went through."""

    bench: Bench
    source: PlainSource
    family: PlainFamily
    workshop: MediaWorkshop
    kept: Kept
    options: MediaOptions


def seeing(
    media: MediaCard | None = LEVELS, script: Script | None = None, *, depth: int = 2
) -> FakeEngine:
    """Return an engine of a model that sees; `media` is what it says of itself, `depth` makes its files others."""
    engine = FakeEngine(script)
    config = f'{{"vision_config": {{"depth": {depth}}}}}'.encode()
    files = {"tokenizer.json": b"{}", "config.json": config}
    engine.bundle = TokenizerBundle(files, "1" * 64, "a test")
    engine.model_card = replace(engine.model_card, media=media, context=4_000)
    return engine


def chat(*content: str | MediaPart) -> tuple[ChatPrompt, ...]:
    """Return a chat of one turn: texts, and pictures by URL."""
    parts: list[Part] = [TextPart(each) if isinstance(each, str) else each for each in content]
    return (ChatPrompt((Turn("user", tuple(parts)),)),)


def picture(url: str, at: int = 1, **said: Any) -> MediaPart:
    """Return a picture that a client names."""
    return MediaPart("image", url, f"messages[0].content[{at}]", **said)


@asynccontextmanager
async def pictured(
    folder: Path,
    files: Mapping[str, str],
    engines: Mapping[str, FakeEngine] | None = None,
    *,
    options: MediaOptions | None = None,
    families: Mapping[str, PlainFamily] | None = None,
    clips: tuple[ClipMark, ...] = (),
    **more: Any,
) -> AsyncIterator[Pictured]:
    """Run a generator over engines of a model that sees; `files` are what is found under each URL.

    `families` are those of engines whose files say something else than others', by their names. `clips` is how the model
    takes videos and sound, none by default.
    """
    source = PlainSource({url: said.encode() for url, said in files.items()})
    used = dict(engines or {"one": seeing()})
    family, kept, chosen = PlainFamily(), Kept(), options or MediaOptions()
    meters = MediaMeters(kept.cells)
    with PictureThreads(2) as threads:
        works = PictureWorks(threads, kept.cache, meters)
        budget = ByteBudget(chosen.inflight_bytes)
        workshop = MediaWorkshop(
            threads, works, budget, meters, Arenas(), SystemClock().monotonic_s, no_clips
        )

        def intake(fleet: Fleet) -> MediaIntake:
            model = fleet.models.find("tiny")
            assert model is not None
            model.rules = book = RuleBook()
            for name, engine in used.items():
                rules = picture_rules(engine.bundle)
                digest = "" if rules is None else rules.digest
                own = _Rules((families or {}).get(name, family), digest, clips)
                model.pictures = book.keep(cast("PictureRules", own))
            return MediaIntake(
                lambda: chosen,
                lambda it: [
                    worker.card
                    for worker in fleet.serving(it)
                    if worker.card and worker.role != "encode"
                ],
                source,
                workshop,
            )

        async with bench_of(folder, used, renderer=_renderer, media=intake, **more) as bench:
            yield Pictured(bench, source, family, workshop, kept, chosen)
        assert budget.taken == 0, "all memory comes back"


class _Rules:
    """Rules of a model whose pictures are plain."""

    why_not = ""
    why_no_clips = "videos are not known here"
    sees = True
    known = True

    def __init__(self, family: PlainFamily, digest: str, clips: tuple[ClipMark, ...]) -> None:
        self.digest = digest
        self._family = family
        self.anchor = family.anchor
        self.clips = clips

    def family(self, tokenizer: object) -> PlainFamily:
        return self._family

    def clip_family(self, tokenizer: object) -> None:
        return None

    def tokens(self, tokenizer: Any) -> TokenTexts:
        return TokenTexts(tokenizer)


def _renderer(*_: object) -> Renderer:
    texts = TemplateTexts({"default": TEMPLATE}, "a test")
    clock = SystemClock()
    return Renderer(texts, {}, options=RenderOptions(), monotonic_s=clock.monotonic_s)
