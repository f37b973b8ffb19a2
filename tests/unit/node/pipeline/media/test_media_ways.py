"""How an engine is handed pictures, by what its card says and who is to work on them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from smg_node.core.generation.request import MediaKind
from smg_node.engines.engine import MediaCard
from smg_node.pipeline.media.media_options import Where
from smg_node.pipeline.media.media_ways import Known, Way, known, takes, unfit, ways_of
from support.engines.fake_engine import card
from support.media.checkpoints import family

VLLM = MediaCard(frozenset({"tensors", "references"}), schemes=frozenset({"http", "https", "data"}))
NO_DATA = MediaCard(frozenset({"tensors", "references"}), schemes=frozenset({"https"}))
SGLANG = MediaCard(frozenset({"tensors"}))
TRTLLM = MediaCard(frozenset({"encoded"}))
VIDEO: tuple[MediaKind, ...] = ("video",)
BOTH: tuple[MediaKind, ...] = ("image", "video")


@pytest.mark.parametrize(
    ("engine", "family", "where", "ways"),
    [
        (VLLM, "yes", "auto", ("tensors", "references")),
        (VLLM, "yes", "node", ("tensors",)),
        (VLLM, "yes", "engine", ("references", "tensors")),
        (VLLM, "no", "auto", ("references",)),
        (VLLM, "no", "node", ()),
        (NO_DATA, "yes", "auto", ("tensors",)),
        (NO_DATA, "no", "auto", ()),
        (NO_DATA, "no", "engine", ("references",)),
        (SGLANG, "yes", "auto", ("tensors",)),
        (SGLANG, "yes", "engine", ("tensors",)),
        (SGLANG, "no", "auto", ()),
        (TRTLLM, "yes", "auto", ("encoded",)),
        (TRTLLM, "no", "node", ("encoded",)),
        (TRTLLM, "no", "engine", ("encoded",)),
        (VLLM, "unproven", "auto", ("references", "tensors")),
        (VLLM, "unproven", "node", ("tensors",)),
        (NO_DATA, "unproven", "auto", ("tensors",)),
        (SGLANG, "unproven", "auto", ("tensors",)),
        (None, "yes", "auto", ()),
    ],
)
def test_the_ways_of_an_engine_are_what_its_card_names_in_the_order_that_is_wanted(
    engine: MediaCard | None, family: Known, where: Where, ways: tuple[Way, ...]
) -> None:
    assert ways_of(engine, family=family, where=where) == ways


def test_an_engine_says_why_it_cannot_be_handed_pictures() -> None:
    few = card(media=MediaCard(frozenset({"tensors"}), items_max={"image": 2}, tokens_max=300))

    def why(items: int, tokens_max: int, *, family: Known = "yes") -> str:
        return takes(
            few, family=family, where="auto", counts={"image": items}, tokens_max=tokens_max
        )

    assert not why(2, 300)
    assert why(3, 300) == "takes at most 2 pictures a request"
    assert why(1, 301) == "takes at most 300 tokens a picture"
    assert why(1, 1, family="no") == "takes pictures in no form that this node can make"
    assert (
        takes(card(), family="yes", where="auto", counts={"image": 1}, tokens_max=1)
        == "takes no pictures"
    )


MLX = None


@pytest.mark.parametrize("kinds", [("video",), ("audio",), ("image", "video")])
@pytest.mark.parametrize(
    ("engine", "where", "ways"),
    [
        (VLLM, "auto", ("references",)),
        (VLLM, "engine", ("references",)),
        (VLLM, "node", ()),
        (NO_DATA, "auto", ()),
        (NO_DATA, "engine", ("references",)),
        (SGLANG, "auto", ()),
        (TRTLLM, "auto", ()),
        (TRTLLM, "engine", ()),
        (MLX, "auto", ()),
    ],
)
def test_videos_and_sound_go_by_reference_with_all_that_is_beside_them(
    engine: MediaCard | None, where: Where, ways: tuple[Way, ...], kinds: tuple[MediaKind, ...]
) -> None:
    found = known(family("qwen3_vl"), kinds)
    assert found == "no"
    assert ways_of(engine, family=found, where=where, kinds=kinds) == ways


@pytest.mark.parametrize(
    ("engine", "where", "counts", "kind", "words"),
    [
        (MLX, "auto", {"image": 1, "video": 1}, "video", "takes no videos"),
        (MLX, "auto", {"audio": 1}, "audio", "takes no sound"),
        (SGLANG, "auto", {"video": 1}, "video", "takes no videos here: vLLM takes them by ref"),
        (TRTLLM, "auto", {"audio": 1}, "audio", "takes no sound here: vLLM takes them by ref"),
        (VLLM, "node", {"image": 1, "video": 1}, "video", "takes no videos: media.where is `node`"),
        (
            MediaCard(frozenset({"references"}), items_max={"video": 1}, schemes=VLLM.schemes),
            "auto",
            {"image": 3, "video": 2},
            "video",
            "takes at most 1 videos a request",
        ),
        (
            MediaCard(frozenset({"references"}), items_max={"audio": 0}, schemes=VLLM.schemes),
            "auto",
            {"audio": 1},
            "audio",
            "takes at most 0 sounds a request",
        ),
    ],
)
def test_what_is_in_the_way_of_videos_and_sound_is_told_with_who_takes_them(
    engine: MediaCard | None,
    where: Where,
    counts: dict[MediaKind, int],
    kind: MediaKind,
    words: str,
) -> None:
    found = unfit(card(media=engine), family="no", where=where, counts=counts, tokens_max=0)
    assert found is not None
    assert found.kind == kind
    assert found.why.startswith(words)
    free: dict[MediaKind, int] = {"image": 3, "video": 2, "audio": 9}
    told = card(media=VLLM)
    assert unfit(told, family="no", where="auto", counts=free, tokens_max=0) is None


def test_videos_are_made_for_engines_that_were_seen_to_take_their_tensors() -> None:
    proven = MediaCard(VLLM.ways, schemes=VLLM.schemes, video_tensors=True)
    for engine, where, ways in (
        (proven, "auto", ("tensors", "references")),
        (proven, "node", ("tensors",)),
        (proven, "engine", ("references", "tensors")),
        (VLLM, "auto", ("references",)),
        (SGLANG, "auto", ()),
    ):
        chosen: Where = cast("Where", where)
        assert ways_of(engine, family="yes", where=chosen, kinds=VIDEO) == ways
    small = card(media=MediaCard(VLLM.ways, tokens_max=10, video_tensors=True))
    found = unfit(small, family="yes", where="auto", counts={"video": 1}, tokens_max=11)
    assert found is not None
    assert (found.kind, found.why) == ("video", "takes at most 10 tokens a video")


def test_a_family_makes_tensors_of_its_own_kind_only() -> None:
    clips = cast("Any", SimpleNamespace(name="qwen3_vl", modality="video"))
    assert known(clips, VIDEO) == "yes"
    assert known(clips, BOTH) == "no"
    assert known(family("qwen3_vl"), BOTH) == "no"
    assert known(family("qwen3_vl"), VIDEO) == "no"


@pytest.mark.parametrize(
    ("name", "expected"), [("qwen3_vl", "yes"), ("kimi_k25", "unproven"), ("", "no")]
)
def test_a_family_is_known_and_may_be_unproven(name: str, expected: Known) -> None:
    assert known(family(name) if name else None) == expected
