"""Two answers are compared by numbers, calls and length; texts are kept only where that is said; memory is bounded."""

import pytest

from smg_node.core.generation.answer import Answer, Choice
from smg_node.core.generation.events import Begin, BlockEnd, Finish, Usage
from smg_node.pipeline.relay.shadows.shadow_records import (
    RECORDS_MAX,
    ROUTES_MAX,
    TEXT_MAX_CHARACTERS,
    ShadowBook,
    ShadowRecord,
    calls_equal,
    figures_of,
)


def answer(text: str = "", *calls: tuple[str, str]) -> Answer:
    blocks = [BlockEnd(0, 0, "text", text)] if text else []
    blocks += [BlockEnd(0, at + 1, "call", said, name) for at, (name, said) in enumerate(calls)]
    choice = Choice(blocks=blocks, finish=Finish(0, "stop"))
    return Answer(Begin("i", "m", 0, 0), [choice], Usage(1, 2, 0))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (answer("a"), answer("b"), None),
        (answer("", ("f", '{"a":1,"b":2}')), answer("x", ("f", '{ "b": 2, "a": 1 }')), True),
        (answer("", ("f", "{}")), answer("", ("f", "")), True),
        (answer("", ("f", "{}")), answer("", ("g", "{}")), False),
        (answer("", ("f", '{"a":1}')), answer("", ("f", '{"a":2}')), False),
        (answer("", ("f", "{}")), answer(""), False),
        (answer("", ("f", "{}"), ("g", "{}")), answer("", ("g", "{}"), ("f", "{}")), False),
        (answer("", ("f", "{broken")), answer("", ("f", "{broken")), True),
        (answer("", ("f", "{broken")), answer("", ("f", "{other")), False),
        (answer("", ("f", "[" * 100_000)), answer("", ("f", "[]")), False),
    ],
)
def test_calls_are_equal_by_name_and_arguments(
    one: Answer, other: Answer, equal: bool | None
) -> None:
    assert calls_equal(one, other) is equal


@pytest.mark.parametrize("keep_text", [False, True])
def test_a_text_is_kept_only_where_it_is_to_be_and_not_without_end(keep_text: bool) -> None:
    long = "x" * (TEXT_MAX_CHARACTERS + 1)
    found = figures_of(
        answer(long, ("f", "{}")),
        used=(5, 1, 3),
        took_s=1.25,
        first_s=None,
        cost_pico=7,
        keep_text=keep_text,
    )
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (5, 1, 3)
    assert (found.took_ms, found.first_ms, found.cost_pico) == (1250, None, 7)
    assert (found.finish, found.calls, found.characters) == ("stop", 1, len(long))
    assert found.text == (long[:TEXT_MAX_CHARACTERS] if keep_text else "")


def record(number: int, equal: bool | None = None) -> ShadowRecord:
    figures = figures_of(
        answer("x"), used=(1, 0, 1), took_s=0, first_s=0, cost_pico=None, keep_text=False
    )
    return ShadowRecord(number, "req", "w", "t", figures, figures, calls_equal=equal)


def test_the_newest_records_of_the_newest_routes_are_kept() -> None:
    book = ShadowBook()
    for number in range(RECORDS_MAX + 5):
        book.keep("r", record(number))
    kept = book.of("r").records
    assert [one.at_ms for one in kept] == list(range(RECORDS_MAX + 4, 4, -1))
    for number in range(ROUTES_MAX):
        book.keep(f"other-{number}", record(number))
    assert book.of("r").records == []
    assert len(book.of("other-0").records) == 1


def test_what_is_counted_is_that_of_the_route() -> None:
    book = ShadowBook()
    for route, outcome in (("r", "answered"), ("r", "answered"), ("r", "failed"), ("s", "cut")):
        book.count(route, outcome)
    for equal in (True, True, False, None):
        book.keep("r", record(1, equal))
    totals = book.of("r")
    assert totals.outcomes == {"answered": 2, "failed": 1}
    assert (totals.calls_equal, totals.calls_different) == (2, 1)
    assert book.of("unknown").records == []
