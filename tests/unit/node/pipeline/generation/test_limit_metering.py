"""What is reserved for a request: for one plain chat the same as for any other request that wants as much."""

from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, token_ids
from smg_node.pipeline.generation.limit_metering import reserve
from smg_node.pipeline.prompt.preparation import Prepared

CONTEXT: Final = 100


class Reserved:
    """Notes what was asked for, as a ticket with one limit on tokens; there is enough."""

    def __init__(self, *, worst_case: bool) -> None:
        self.matched = SimpleNamespace(tariffs=("one",), worst_case=worst_case)
        self.asked: list[tuple[int, int | None, int]] = []

    def short_of(self, prompt_tokens: int, most_tokens: int | None, answers: int) -> None:
        self.asked.append((prompt_tokens, most_tokens, answers))


def asked(request: GenerateRequest, *lengths: int, worst_case: bool) -> tuple[int, int | None, int]:
    ticket = Reserved(worst_case=worst_case)
    prepared = [Prepared(token_ids([1] * length), "", "messages") for length in lengths]
    placer: Any = SimpleNamespace(context=lambda _model: CONTEXT)
    assert reserve(cast(Any, ticket), request, prepared, cast(Any, None), placer) is None
    [found] = ticket.asked
    return found


@pytest.mark.parametrize("max_tokens", [None, 1, 300])
@pytest.mark.parametrize("worst_case", [False, True])
def test_a_plain_chat_is_reserved_for_as_any_other(
    max_tokens: int | None, worst_case: bool
) -> None:
    plain = GenerateRequest(
        "m", (ChatPrompt(()),), Sampling(max_tokens=max_tokens), False, alike=True
    )
    found = asked(plain, 7, worst_case=worst_case)
    assert found == asked(replace(plain, alike=False), 7, worst_case=worst_case)
    left = CONTEXT - 7
    worst = left if max_tokens is None else min(left, max_tokens)
    assert found == (7, worst if worst_case else max_tokens, 1)


def test_several_prompts_and_answers_count_together_and_cut_ones_as_they_are_cut() -> None:
    wished = GenerateRequest("m", (ChatPrompt(()),) * 2, Sampling(max_tokens=5, n=3), False)
    assert asked(wished, 7, 4, worst_case=False) == (11, 30, 6)
    cut = replace(wished, truncate_prompt_tokens=5)
    assert asked(cut, 7, 4, worst_case=False) == (9, 30, 6)
