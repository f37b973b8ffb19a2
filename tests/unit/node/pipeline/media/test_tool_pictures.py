"""Pictures that tools answer: shown to a model that sees, as far as they are pictures."""

from pathlib import Path
from typing import Any

from smg_node.core.generation.request import MediaPart, TextPart
from smg_node.core.generation.tool_serving import RunResult
from smg_node.engines.engine import MediaCard
from smg_node.pipeline.media.media_intake import MediaIntake
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.tool_pictures import RESULT_MAX, ToolPictures
from smg_node.pipeline.tool_loop.pass_turns import result_turn
from support.media.pictured_bench import Pictured, pictured, seeing

FILES = {"data:image;base64,AAAA": "30x2:a", "data:image;base64,BBBB": "20x2:!"}
GOOD: dict[str, Any] = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
BROKEN: dict[str, Any] = {"type": "image", "data": "BBBB", "mimeType": "image/png"}
ODD: list[dict[str, Any]] = [
    {"type": "image"},
    {"type": "image", "data": 7},
    {"type": "text", "text": "AAAA"},
    {"type": "image", "data": "CCCC"},
]


def tool_pictures(it: Pictured) -> ToolPictures:
    fleet = it.bench.fleet
    intake = MediaIntake(
        MediaOptions,
        lambda model: [worker.card for worker in fleet.serving(model) if worker.card],
        it.source,
        it.workshop,
    )
    return ToolPictures(fleet.models.find, lambda: intake)


async def test_a_model_that_sees_is_shown_what_can_be_decoded(tmp_path: Path) -> None:
    async with pictured(tmp_path, FILES) as it:
        shown = await tool_pictures(it).shown("tiny", [BROKEN, *ODD, GOOD])
        assert shown == ("data:image;base64,AAAA",)
        many = await tool_pictures(it).shown("tiny", [GOOD] * (RESULT_MAX + 5))
        assert len(many) == RESULT_MAX
        assert it.source.decodes == 2, "the good one once, and the broken one"


async def test_no_more_are_shown_than_a_request_may_have(tmp_path: Path) -> None:
    card = MediaCard(ways=frozenset({"tensors"}), device_normalizes=True, items_max={"image": 3})
    async with pictured(tmp_path, FILES, {"one": seeing(card)}) as it:
        pictures = tool_pictures(it)
        shown = [len(await pictures.shown("tiny", [GOOD, GOOD], beside)) for beside in range(5)]
        assert shown == [2, 2, 1, 0, 0]
        assert it.workshop.budget.taken == 0


async def test_a_model_that_sees_nothing_is_shown_nothing(tmp_path: Path) -> None:
    async with pictured(tmp_path, FILES, {"one": seeing(None)}) as it:
        assert await tool_pictures(it).shown("tiny", [GOOD]) == ()
        assert await tool_pictures(it).shown("unknown", [GOOD]) == ()
        assert it.source.got == []


def test_a_result_with_pictures_is_a_turn_of_text_and_pictures() -> None:
    turn = result_turn("c1", RunResult("[image/png, 3 B]", pictures=("data:image;base64,AAAA",)))
    assert turn.content == (
        TextPart("[image/png, 3 B]"),
        MediaPart("image", "data:image;base64,AAAA", "tools"),
    )
    assert result_turn("c1", RunResult("said")).content == "said"
