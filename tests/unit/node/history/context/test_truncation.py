from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.input_items import user_message
from smg_node.history.context.truncation import Search, budget_of, layout_of, too_long
from support.history.history_world import ask_of


def items(*rows: Mapping[str, object]) -> tuple[ItemDoc, ...]:
    return ask_of(input=list(rows)).items


def said(role: str, text: str = "x") -> dict[str, object]:
    return {"role": role, "content": text}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "1"}


def search(sizes: Sequence[int], tokens: Sequence[int], budget: int) -> tuple[int | None, int]:
    """Search through known lengths; return what it found and how often it asked."""
    seeking = Search(sizes, budget)
    asked = 0
    while (count := seeking.wanted) is not None:
        seeking.measured(count, tokens[count])
        asked += 1
    return seeking.best, asked


def test_an_answer_of_unknown_length_leaves_a_quarter_free_and_at_most_1024_tokens() -> None:
    assert budget_of(1_000, None) == 750
    assert budget_of(100_000, None) == 100_000 - 1_024
    assert budget_of(1_000, 10) == 990


def test_the_newest_group_and_what_belongs_to_the_new_input_always_stay() -> None:
    history = items(said("user"), CALL, OUTPUT, said("assistant"), said("user"), said("assistant"))
    layout = layout_of((*history, user_message("new")), new_from=len(history))
    assert layout.stay == (6,)
    assert layout.may_go == ((4, 5), (0, 1, 2, 3))


def test_a_call_whose_output_is_new_stays_with_its_question() -> None:
    history = items(said("user"), said("assistant"), said("user"), CALL)
    layout = layout_of((*history, *items(OUTPUT)), new_from=len(history))
    assert layout.stay == (2, 3, 4)
    assert layout.may_go == ((0, 1),)


def test_without_new_input_the_newest_group_is_the_last_one_of_the_history() -> None:
    history = items(said("user"), said("assistant"), said("user"), said("assistant"))
    layout = layout_of(history, new_from=len(history))
    assert layout.stay == (2, 3)


def test_system_and_developer_messages_stay_wherever_they_are() -> None:
    rows = items(said("system"), said("user"), said("developer"), said("assistant"), said("user"))
    layout = layout_of(rows, new_from=4)
    assert layout.stay == (0, 2, 4)
    assert layout.places(0) == (0, 2, 4)
    assert layout.places(1) == (0, 1, 2, 3, 4)


def test_all_of_it_is_kept_when_all_of_it_fits() -> None:
    assert search([10, 10, 10], [3, 6, 9], 9) == (2, 1)


def test_nothing_fits_where_even_what_stays_is_too_long() -> None:
    seeking = Search([40, 40], 5)
    while (count := seeking.wanted) is not None:
        seeking.measured(count, (10, 20)[count])
    assert seeking.best is None
    assert seeking.shortest == 10


def test_what_is_too_long_says_both_numbers() -> None:
    error = too_long(120, 75, 100)
    assert (error.status, error.code, error.where) == (400, "context_length_exceeded", "input")
    assert "120" in error.message
    assert "75" in error.message


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 2_000)), min_size=1, max_size=60),
    st.integers(1, 9_000),
)
def test_the_search_finds_the_largest_number_that_fits(
    groups: list[tuple[int, int]], budget: int
) -> None:
    lengths = [sum(tokens for tokens, _ in groups[: end + 1]) for end in range(len(groups))]
    best, asked = search([size for _, size in groups], lengths, budget)
    fitting = [count for count, tokens in enumerate(lengths) if tokens <= budget]
    assert best == (fitting[-1] if fitting else None)
    assert asked <= 3 * len(groups).bit_length() + 3


def test_two_thousand_items_of_about_one_size_take_a_handful_of_renderings() -> None:
    sizes = [150 + place % 17 for place in range(1_000)]
    lengths = [sum(sizes[: end + 1]) // 5 for end in range(len(sizes))]
    best, asked = search(sizes, lengths, 3_000)
    assert best is not None
    assert lengths[best] <= 3_000 < lengths[best + 1]
    assert asked <= 8
