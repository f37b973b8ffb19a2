"""How an engine is handed pictures, by what its card says and who is to work on them."""

import pytest

from smg_node.engines.engine import MediaCard
from smg_node.pipeline.media.media_options import Where
from smg_node.pipeline.media.media_ways import Way, takes, ways_of
from support.engines.fake_engine import card

VLLM = MediaCard(frozenset({"tensors", "references"}), schemes=frozenset({"http", "https", "data"}))
NO_DATA = MediaCard(frozenset({"tensors", "references"}), schemes=frozenset({"https"}))
SGLANG = MediaCard(frozenset({"tensors"}))
TRTLLM = MediaCard(frozenset({"encoded"}))


@pytest.mark.parametrize(
    ("engine", "family", "where", "ways"),
    [
        (VLLM, True, "auto", ("tensors", "references")),
        (VLLM, True, "node", ("tensors",)),
        (VLLM, True, "engine", ("references", "tensors")),
        (VLLM, False, "auto", ("references",)),
        (VLLM, False, "node", ()),
        (NO_DATA, True, "auto", ("tensors",)),
        (NO_DATA, False, "auto", ()),
        (NO_DATA, False, "engine", ("references",)),
        (SGLANG, True, "auto", ("tensors",)),
        (SGLANG, True, "engine", ("tensors",)),
        (SGLANG, False, "auto", ()),
        (TRTLLM, True, "auto", ("encoded",)),
        (TRTLLM, False, "node", ("encoded",)),
        (TRTLLM, False, "engine", ("encoded",)),
        (None, True, "auto", ()),
    ],
)
def test_the_ways_of_an_engine_are_what_its_card_names_in_the_order_that_is_wanted(
    engine: MediaCard | None, family: bool, where: Where, ways: tuple[Way, ...]
) -> None:
    assert ways_of(engine, family=family, where=where) == ways


def test_an_engine_says_why_it_cannot_be_handed_pictures() -> None:
    few = card(media=MediaCard(frozenset({"tensors"}), items_max={"image": 2}, tokens_max=300))

    def why(items: int, tokens_max: int, *, family: bool = True) -> str:
        return takes(few, family=family, where="auto", items=items, tokens_max=tokens_max)

    assert not why(2, 300)
    assert why(3, 300) == "takes at most 2 pictures a request"
    assert why(1, 301) == "takes at most 300 tokens a picture"
    assert why(1, 1, family=False) == "takes pictures in no form that this node can make"
    assert takes(card(), family=True, where="auto", items=1, tokens_max=1) == "takes no pictures"
