"""The block table keeps its books, whatever is claimed, filled, released and evicted."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smg_chaos.engine.cache.blocks import BlockTable, Cleared, PlainBlocks, Removed, Stored, chain

SIZE = 4
COUNT = 12


def test_a_key_depends_on_everything_before_it() -> None:
    one, other = chain([1] * 12, 4), chain([2] * 4 + [1] * 8, 4)
    assert len(one) == 3
    assert not set(one) & set(other)
    assert chain([1] * 8, 4, parent=one[0]) == one[1:]
    assert chain([1] * 11, 4) == one[:2]
    assert chain([], 4) == []


def test_the_oldest_end_is_evicted_first() -> None:
    table = BlockTable(4, SIZE)
    keys = chain(list(range(16)), SIZE)
    blocks = table.claim((), 4)
    assert blocks is not None
    table.fill(blocks, keys, list(range(16)), None)
    table.release(blocks)
    assert table.match(keys) == blocks
    assert table.claim((), 1) == [blocks[3]]
    assert table.match(keys) == blocks[:3]


def test_without_a_cache_blocks_are_counted_and_nothing_is_found_or_told() -> None:
    plain = PlainBlocks(4, SIZE)
    blocks = plain.claim((), 3)
    assert blocks is not None
    plain.fill(blocks, chain([1] * 12, SIZE), [1] * 12, None)
    assert (plain.match(chain([1] * 12, SIZE)), plain.changes(), plain.live()) == ([], [], [])
    assert plain.claim((), 2) is None
    assert (plain.used, plain.resident, sorted(plain.users())) == (3, 3, [0, 1, 1, 1])
    plain.release(blocks)
    assert plain.users() == [0] * 4


class Table(RuleBasedStateMachine):
    """Requests of random prompts over a small alphabet, so that beginnings are shared."""

    def __init__(self) -> None:
        super().__init__()
        self.table = BlockTable(COUNT, SIZE)
        self.held: list[list[int]] = []
        self.believed: list[int] = []

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=24))
    def place(self, tokens: list[int]) -> None:
        keys = chain(tokens, SIZE)
        found = self.table.match(keys[: (len(tokens) - 1) // SIZE])
        full, known = len(tokens) // SIZE, len(found)
        free = self.table.free
        blocks = self.table.claim(found, full + 1 - known)
        if blocks is None:
            assert full + 1 - known > free - len(set(found))
            return
        assert len(set(blocks)) == len(blocks)
        parent = keys[known - 1] if known else None
        self.table.fill(blocks[known:full], keys[known:], tokens[known * SIZE :], parent)
        self.held.append(blocks)

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        self.table.release(self.held.pop(which % len(self.held)))

    @precondition(lambda self: not self.held)
    @rule()
    def forget(self) -> None:
        self.table.clear()

    @invariant()
    def the_books_are_right(self) -> None:
        users = [0] * COUNT
        for blocks in self.held:
            for block in blocks:
                users[block] += 1
        assert self.table.users() == users
        assert self.table.used == sum(1 for count in users if count)
        assert self.table.used + self.table.free == COUNT
        assert self.table.used <= self.table.resident <= COUNT

    @invariant()
    def the_changes_tell_what_is_cached(self) -> None:
        for change in self.table.changes():
            if isinstance(change, Stored):
                self.believed += [content.key for content in change.contents]
            elif isinstance(change, Removed):
                for key in change.keys:
                    self.believed.remove(key)
            else:
                assert isinstance(change, Cleared)
                self.believed.clear()
        live = self.table.live()
        assert sorted(content.key for content in live) == sorted(self.believed)
        seen: set[int | None] = {None}
        everything = {content.key for content in live}
        for content in live:
            # Parents come first, unless they are gone.
            assert content.parent in seen or content.parent not in everything
            seen.add(content.key)


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
