"""What a prompt is expected to read at a place, and what its answer's usage makes of that."""

from collections.abc import Mapping
from typing import Any

import pytest

from smg_node.core.generation.events import Usage
from smg_node.engines.http.vendor_cache import CachePlace, CacheRules
from smg_node.providers.affinity.cache_book import CacheBook, State
from smg_node.providers.affinity.cache_forecast import LOOK_BACK, Forecast, Lookup, Way
from smg_node.providers.affinity.cache_verdict import note_answered, note_sent
from smg_node.providers.affinity.prompt_beginning import PromptBeginning, beginning_of

MARKED = CacheRules(marked=True, least_tokens=100, life_ms=300_000, mark="top")
PLAIN = CacheRules(marked=False, least_tokens=100, life_ms=300_000)
PLACE = CachePlace(7)
NATIVE, WRITTEN = Way("messages", True), Way("messages", False)
RATIO = 0.25


def prompt(turns: int, *, marks: bool = False, size: int = 1_000, pad: int = 0) -> PromptBeginning:
    rows: list[dict[str, Any]] = []
    for at in range(turns):
        block: dict[str, Any] = {"type": "text", "text": f"{at} " + "x" * size}
        if marks and at == turns - 1:
            block["cache_control"] = {"type": "ephemeral"}
        extra = [{"type": "text", "text": f"{at}.{n}"} for n in range(pad)]
        rows.append({"role": "user", "content": [*extra, block]})
    return beginning_of(("system", "messages"), {"messages": rows}, marked=marks)


class Account:
    """One place and a book; time is what the test says."""

    def __init__(self, rules: CacheRules, way: Way = NATIVE) -> None:
        self.rules, self.way = rules, way
        self.book = CacheBook()
        self.now_ms = 0

    def expects(self, one: PromptBeginning) -> Forecast:
        return Lookup(self.book, one, self.now_ms).forecast(
            self.rules, PLACE, PLACE.scope, self.way, RATIO
        )

    def asks(self, one: PromptBeginning, read: float = 0, written: float = 0) -> Forecast:
        """Send a prompt whose answer tells of so many tokens; return what was expected of it."""
        found = self.expects(one)
        note_sent(self.book, found, self.now_ms)
        tokens = round(one.size_bytes * RATIO)
        used = Usage(tokens, 1, round(read), cache_write_tokens=round(written))
        note_answered(self.book, found, used, self.now_ms, marked=self.rules.marked)
        return found


def tokens(one: PromptBeginning) -> float:
    return one.size_bytes * RATIO


def test_what_is_marked_is_written_and_a_later_turn_reads_it_to_the_byte() -> None:
    account, first, later = Account(MARKED), prompt(2, marks=True), prompt(3, marks=True)
    told = account.asks(first, written=tokens(first))
    assert (told.cached, told.written, told.read) == (0, tokens(first), 0)
    found = account.expects(later)
    assert (found.cached, found.belief) == (tokens(first), 1.0)
    assert found.written == pytest.approx(tokens(later) - tokens(first))


def test_a_marked_prompt_that_differs_in_its_last_bytes_reads_nothing() -> None:
    account = Account(MARKED)
    account.asks(prompt(2, marks=True), written=500)
    other = prompt(2, marks=True, size=1_001)
    assert account.expects(other).cached == 0


def test_without_marks_such_a_vendor_caches_nothing_and_reads_nothing() -> None:
    account = Account(MARKED)
    account.asks(prompt(2, marks=True), written=500)
    found = account.expects(prompt(3))
    assert (found.cached, found.written, list(found.keeps)) == (0, 0, [])


def test_an_earlier_mark_is_looked_for_among_the_last_twenty_pieces_only() -> None:
    for pad, reads in ((LOOK_BACK - 2, True), (LOOK_BACK, False)):
        account = Account(MARKED)
        account.asks(prompt(2, marks=True), written=500)
        rows = prompt(2)
        longer = prompt_after(rows, pad)
        assert (account.expects(longer).cached > 0) is reads


def prompt_after(before: PromptBeginning, pieces: int) -> PromptBeginning:
    """Return the prompt of two turns with one more turn of so many pieces and a marked one."""
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": f"{at} " + "x" * 1_000}]}
        for at in range(2)
    ]
    last = [{"type": "text", "text": f"piece {at}"} for at in range(pieces)]
    mark = {"cache_control": {"type": "ephemeral"}}
    rows.append({"role": "user", "content": [*last, {"type": "text", "text": "end", **mark}]})
    found = beginning_of(("system", "messages"), {"messages": rows}, marked=True)
    assert found.ends[:2] == before.ends[:2]
    return found


def test_below_the_least_length_nothing_is_expected_nor_remembered() -> None:
    account = Account(MARKED)
    short = prompt(1, marks=True, size=200)
    assert account.asks(short).keeps == []
    assert len(account.book) == 0


def test_a_mark_for_an_hour_lives_for_an_hour_and_is_told_apart() -> None:
    account = Account(MARKED)
    block = {
        "type": "text",
        "text": "x" * 2_000,
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    one = beginning_of(
        ("messages",), {"messages": [{"role": "user", "content": [block]}]}, marked=True
    )
    told = account.asks(one, written=tokens(one))
    assert told.written_long == told.written > 0
    account.now_ms = 3_599_999
    assert account.expects(one).cached > 0
    account.now_ms = 3_600_000
    assert account.expects(one).cached == 0


def test_a_translated_prompt_is_marked_once_its_beginning_was_seen() -> None:
    account = Account(MARKED, WRITTEN)
    first = account.asks(prompt(1))
    assert (first.marked, [kept.state for kept in first.keeps]) == (False, [State.SEEN])
    second = account.asks(prompt(2), written=tokens(prompt(2)))
    assert (second.marked, second.cached) == (True, 0)
    third = account.expects(prompt(3))
    assert (third.marked, third.cached) == (True, tokens(prompt(2)))
    stranger = account.expects(prompt(3, size=999))
    assert not stranger.marked


def test_an_automatic_vendor_reads_whole_blocks_of_what_it_was_sent() -> None:
    account, first, later = Account(PLAIN), prompt(2), prompt(3)
    account.asks(first)
    found = account.expects(later)
    blocks = first.size_bytes // 256 * 256 * RATIO
    assert (found.cached, found.belief) == (blocks, 0.7)
    assert found.read == pytest.approx(0.7 * blocks)
    account.asks(later, read=blocks)
    assert account.expects(later).belief in (0.7, 1.0)
    assert account.expects(first).belief == 1.0


def test_explicit_mode_of_openai_is_by_marks() -> None:
    rows = [{"role": "user", "content": "x" * 4_000}]
    fields = {"messages": rows, "prompt_cache_options": {"mode": "explicit"}}
    one = beginning_of(("messages",), fields, marked=False)
    account = Account(PLAIN)
    assert account.asks(one).keeps == []


def test_half_weight_halves_what_is_believed() -> None:
    account = Account(CacheRules(False, 100, 300_000, weight=0.5))
    account.asks(prompt(2))
    assert account.expects(prompt(2)).belief == pytest.approx(0.35)


def test_a_miss_is_forgotten_at_once_and_a_second_one_for_good() -> None:
    account, one = Account(PLAIN), prompt(2)
    account.asks(one)
    account.asks(one, read=tokens(one))
    assert account.expects(one).belief == 1.0
    account.asks(one, read=0)
    assert account.expects(one).belief == 0.35
    account.asks(one, read=0)
    assert account.expects(one).read == 0
    account.asks(one, read=0)
    assert account.expects(one).belief == 0.7


def test_a_miss_that_was_written_anew_is_there_again() -> None:
    account, one = Account(MARKED), prompt(2, marks=True)
    account.asks(one, written=tokens(one))
    account.asks(one, read=0, written=tokens(one))
    assert account.expects(one).belief == 1.0


def test_a_vendor_that_says_it_kept_nothing_is_believed() -> None:
    account, one = Account(MARKED), prompt(2, marks=True)
    account.asks(one)
    assert (account.expects(one).cached, len(account.book)) == (0, 0)


def test_a_read_begins_the_life_anew() -> None:
    account, one = Account(MARKED), prompt(2, marks=True)
    account.asks(one, written=tokens(one))
    account.now_ms = 200_000
    account.asks(one, read=tokens(one))
    account.now_ms = 499_999
    assert account.expects(one).belief == 1.0
    account.now_ms = 500_000
    assert account.expects(one).cached == 0


def test_an_answer_without_usage_leaves_what_was_sent() -> None:
    account, one = Account(PLAIN), prompt(2)
    found = account.expects(one)
    note_sent(account.book, found, 0)
    note_answered(account.book, found, None, 0, marked=False)
    assert account.expects(one).belief == 0.7


@pytest.mark.parametrize("fields", [{}, {"messages": []}, {"messages": None}])
@pytest.mark.parametrize("rules", [MARKED, PLAIN])
@pytest.mark.parametrize("way", [NATIVE, WRITTEN])
def test_an_empty_prompt_expects_nothing(
    fields: Mapping[str, Any], rules: CacheRules, way: Way
) -> None:
    account = Account(rules, way)
    found = account.asks(beginning_of(("messages",), fields, marked=True))
    assert (found.read, found.written, list(found.keeps)) == (0, 0, [])
