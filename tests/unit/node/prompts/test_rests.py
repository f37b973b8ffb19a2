"""Rendering in a thread lets others go on now and then; a short prompt is made in one go."""

import pytest

from smg_node.core.generation.request import ChatPrompt, Turn
from smg_node.prompts.jinja.render_budget import REST_EVERY, Meter
from support.models.prompt_corpus import NOW, renderer

SHOW = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


def rested(prompt: ChatPrompt) -> int:
    """Return how often the rendering of a prompt rested."""
    rests: list[None] = []
    ours = renderer(SHOW)
    text = ours.render(prompt, now=NOW, rest=lambda: rests.append(None))
    assert text == ours.render(prompt, now=NOW)
    return len(rests)


@pytest.mark.parametrize(
    ("turns", "characters", "rests"),
    [
        (1, 10, 0),
        (127, 10, 0),
        # Turns that become messages: one rest for 128 of them.
        (128, 10, 1),
        (300, 10, 2),
    ],
)
def test_turns_become_messages_with_rests(turns: int, characters: int, rests: int) -> None:
    assert rested(ChatPrompt((Turn("user", "x" * characters),) * turns)) == rests


def test_a_long_prompt_is_printed_with_a_rest_after_each_piece_of_work() -> None:
    once = rested(ChatPrompt((Turn("user", "x" * 40_000),) * 16))
    twice = rested(ChatPrompt((Turn("user", "x" * 40_000),) * 32))
    assert once >= 16 * 40_000 // (2 * REST_EVERY)
    assert 2 * once <= twice <= 2 * once + 1


def test_a_meter_rests_when_so_much_is_spent_and_not_before() -> None:
    rests: list[int] = []
    meter = Meter(
        output_max=1 << 20,
        render_max_s=1.0,
        monotonic_s=lambda: 0.0,
        rest=lambda: rests.append(meter.left),
    )
    most = meter.left
    for _ in range(4 * REST_EVERY // 1_000):
        meter.spend(1_000)
    spent = [most - left for left in rests]
    assert len(spent) == 3
    assert all(
        REST_EVERY < after - before <= REST_EVERY + 6_000
        for before, after in zip([0, *spent], spent, strict=False)
    )
