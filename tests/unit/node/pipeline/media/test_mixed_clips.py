"""Workers of one model whose files differ: for whom the tensors of a prompt's videos are made."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, MediaPart, Part, TextPart, Turn
from smg_node.engines.engine import MediaCard, ModelCard
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.picture_rules import PictureRules, RuleBook, TokenTexts
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.pixels.arena import Arenas
from smg_node.pipeline.media.asked_media import AskedMedia
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from smg_node.pipeline.media.making.picture_making import MediaWorkshop
from smg_node.pipeline.media.making.picture_threads import PictureThreads
from smg_node.pipeline.media.making.picture_works import PictureWorks
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.media.media_meters import MediaMeters
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.rule_groups import clip_makers, groups_of, rules_of
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import card
from support.media.pictured_bench import VIDEOS
from support.media.plain_pictures import Kept, PlainFamily, PlainSource, no_clips
from support.models.bytewise_tokenizer import BytewiseTokenizer

WHERE = "messages[0].content[1]"
TENSORS = MediaCard(frozenset({"tensors"}), video_tensors=True)
PICTURES = MediaCard(frozenset({"tensors"}))
BYTEWISE: Any = BytewiseTokenizer()


class Films:
    """A family of videos of which only the name is looked at."""

    modality = "video"
    name = "films"

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint


class Rules:
    """Rules of a model whose pictures are plain, with or without videos."""

    why_not = ""
    sees = True
    known = True
    clips = (VIDEOS,)

    def __init__(self, digest: str, family: PlainFamily, films: Films | None) -> None:
        self.digest = digest
        self.anchor = family.anchor
        self.why_no_clips = "" if films else f"{digest} knows no videos"
        self._family = family
        self._films = films

    def family(self, tokenizer: object) -> PlainFamily:
        return self._family

    def clip_family(self, tokenizer: object) -> Films | None:
        return self._films

    def tokens(self, tokenizer: Any) -> TokenTexts:
        return TokenTexts(tokenizer)


COARSE, FINE = PlainFamily(), PlainFamily("plain-2", 5)
FIRST, SECOND = Films("films-1"), Films("films-2")


def model(*rules: Rules) -> ServedModel:
    nothing: Any = None
    served = ServedModel(
        "eyes", 0, BYTEWISE, nothing, nothing, nothing, nothing, ModelSettings(), "d", None
    )
    served.rules = book = RuleBook()
    for one in rules:
        served.pictures = book.keep(cast(PictureRules, one))
    return served


def worker(digest: str, media: MediaCard = TENSORS) -> ModelCard:
    return card(media=replace(media, rules=digest))


async def asked(
    served: ServedModel,
    cards: list[ModelCard],
    url: str,
    ready: list[ModelCard] | None = None,
    *,
    beside: tuple[MediaPart, ...] = (),
) -> AskedMedia:
    kept = Kept()
    meters = MediaMeters(kept.cells)
    with PictureThreads(1) as threads:
        works = PictureWorks(threads, kept.cache, meters)
        monotonic_s = SystemClock().monotonic_s
        workshop = MediaWorkshop(
            threads, works, ByteBudget(1), meters, Arenas(), monotonic_s, no_clips
        )
        intake = MediaIntake(
            MediaOptions,
            lambda _: cards,
            PlainSource({}),
            workshop,
            lambda _: cards if ready is None else ready,
        )
        parts: tuple[Part, ...] = (TextPart("look"), MediaPart("video", url, WHERE), *beside)
        return await intake.asked(ChatPrompt((Turn("user", parts),)), served)


URLS = [f"https://x/{at}" for at in range(12)]


async def test_a_video_goes_to_workers_that_take_its_tensors_however_many_others_there_are() -> (
    None
):
    served = model(Rules("many", COARSE, FIRST), Rules("few", FINE, SECOND))
    cards = [worker("many", PICTURES)] * 3 + [worker("few")]
    for url in URLS:
        found = await asked(served, cards, url)
        assert found.family is not None
        assert found.family.fingerprint == "films-2"
        assert found.files == {"", "few"}


async def test_videos_are_spread_over_groups_and_go_to_none_whose_workers_are_all_away() -> None:
    served = model(Rules("one", COARSE, FIRST), Rules("two", FINE, SECOND))
    cards = [worker("one"), worker("one"), worker("two")]
    seen = set()
    for url in URLS:
        seen.add((await asked(served, cards, url)).files)
        away = await asked(served, cards, url, ready=cards[2:])
        assert away.files == {"", "two"}
    assert seen == {frozenset({"", "one"}), frozenset({"", "two"})}


@pytest.mark.parametrize("order", [1, -1])
def test_workers_of_a_group_that_know_videos_make_them_whatever_others_know(order: int) -> None:
    rules = [Rules("a", COARSE, None), Rules("b", COARSE, FIRST), Rules("c", COARSE, FIRST)]
    served = model(*rules)
    cards = [worker("a"), worker("b"), worker("c")][::order]
    (group,) = groups_of(rules_of(served, cards), BYTEWISE)
    assert [one.digest for one in group.rules] == ["a", "b", "c"], "in the same order on each node"
    found = clip_makers(group, BYTEWISE)
    assert cast(Any, found.maker) is FIRST
    assert found.group.files == {"", "b", "c"}
    assert found.group.why_no_clips == ""


async def test_rules_that_most_workers_have_go_first_and_others_are_told_why() -> None:
    served = model(Rules("a", COARSE, FIRST), Rules("b", COARSE, SECOND))
    found = await asked(served, [worker("a"), worker("b"), worker("b")], URLS[0])
    assert found.files == {"", "b"}
    served = model(Rules("a", COARSE, None), Rules("b", FINE, None))
    with pytest.raises(SmgError, match="knows no videos"):
        await asked(served, [worker("a"), worker("b")], URLS[0])


async def test_a_tools_picture_beside_a_video_is_refused_as_what_a_run_goes_on_without() -> None:
    served = model(Rules("a", COARSE, FIRST))
    assert (await asked(served, [worker("a")], URLS[0])).family is not None
    shown = MediaPart("image", "data:image;base64,AAAA", "tools")
    with pytest.raises(SmgError) as caught:
        await asked(served, [worker("a")], URLS[0], beside=(shown,))
    # See `tool_loop.pass_plan`: the video is the client's.
    assert (caught.value.code, caught.value.where) == ("unsupported_parameter", WHERE)
