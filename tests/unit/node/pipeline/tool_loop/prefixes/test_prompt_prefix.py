"""Prompt prefix: the prompt of each pass begins with that of the pass before it, so that engines find it in their caches.

That holds as far as a template lets it: some move what is old, or leave out thoughts that they have asked for.
"""

from itertools import pairwise

import pytest

from smg_node.core.generation.events import Event
from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.prompts.renderer import Renderer
from support.mcp.loop_world import Model, Servers, calls, heard, request, said, serving, speech
from support.models.coded_prompts import FAMILIES as CODED
from support.models.coded_prompts import coded
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import NOW, renderer, source

W = {"w": ["tides", "weather"]}
MOVES_SYSTEM = "mistral"
"""Its template tells the system message with the last turn, if that is the user's."""
CORPUS = ["channels", "chatml", "llama", MOVES_SYSTEM]
# Where the prompt itself opens a thought, an answer has one.
THINKING = [(name, True) for name in sorted(FAMILIES)]
SILENT = [(name, False) for name in sorted(FAMILIES) if not FAMILIES[name].prompt]


async def prompts(*, thinks: bool = False, system: bool = True) -> list[ChatPrompt]:
    """Return the prompts of the passes of one answer: calls alone, several at once, text before one, too many."""

    def thought(text: str) -> list[list[Event]]:
        return [said(text, kind="reasoning")] if thinks else []

    at = int(thinks)
    model = Model(
        speech(
            *thought("I look."), calls("weather", '{"city": "Bonn"}', block=at, call_id="abcdefgh1")
        ),
        speech(
            *thought("And the sea?"),
            said("It rains.", block=at),
            calls("tides", '{"port": "Brest", "day": 1}', block=at + 1, call_id="abcdefgh2"),
            calls("tides", '{"port": "Ο Πειραιάς"}', block=at + 2, call_id="abcdefgh3"),
        ),
        speech(*thought("Once more."), calls("tides", "{}", block=at, call_id="abcdefgh4")),
        speech(said("Go at five.")),
    )
    turns = (*[Turn("system", "Be brief.")][: int(system)], Turn("user", "What now?"))
    await heard(model, Servers(W), request(serving("w", calls_max=3), turns=turns))
    assert len(model.runs) == 4
    found = [model.prompt(at) for at in range(4)]
    assert [prompt.choice.mode for prompt in found] == ["auto", "auto", "auto", "none"]
    return found


def check(ours: Renderer, passes: list[ChatPrompt]) -> None:
    texts = [ours.render(prompt, now=NOW) for prompt in passes]
    for before, after in pairwise(texts):
        assert after.startswith(before)
        assert len(after) > len(before)


@pytest.mark.parametrize("name", CORPUS)
async def test_templates_of_models(name: str) -> None:
    check(renderer(source(name)), await prompts(system=name != MOVES_SYSTEM))


@pytest.mark.parametrize(("name", "thinks"), THINKING + SILENT)
async def test_templates_of_families(name: str, thinks: bool) -> None:
    check(renderer(FAMILIES[name].template), await prompts(thinks=thinks))


@pytest.mark.parametrize("family", CODED)
async def test_prompts_that_are_made_by_code(family: str) -> None:
    check(coded(family), await prompts(thinks=True))
