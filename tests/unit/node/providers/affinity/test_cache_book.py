"""The cache book: the later entry counts, what is over is gone, the first written goes first; what is shared."""

from smg_node.providers.affinity.cache_book import CacheBook, Entry, State

LIFE = 300_000


class Told:
    def __init__(self) -> None:
        self.said: list[tuple[int, int, str]] = []

    def put(self, beginning: int, entry: Entry) -> None:
        self.said.append((beginning, entry.scope, entry.state.name))

    def remove(self, beginning: int, scope: int) -> None:
        self.said.append((beginning, scope, "gone"))


def note(book: CacheBook, beginning: int, scope: int, state: State, now_ms: int = 0) -> None:
    book.note(beginning, scope, state, life_ms=LIFE, now_ms=now_ms, shared=True)


def test_scopes_have_entries_of_their_own_in_the_order_that_is_asked() -> None:
    book = CacheBook()
    note(book, 1, 10, State.SENT)
    note(book, 2, 10, State.CONFIRMED)
    note(book, 1, 20, State.SEEN)
    found = book.among([(3, 900), (2, 600), (1, 300)], 1)
    assert [(one.hash, one.size_bytes, one.belief) for one in found[10]] == [
        (2, 600, 1.0),
        (1, 300, 0.7),
    ]
    assert [one.belief for one in found[20]] == [0.0]
    assert len(book) == 3


def test_an_entry_is_over_with_its_life_and_a_use_begins_it_anew() -> None:
    told = Told()
    book = CacheBook(told)
    note(book, 1, 10, State.CONFIRMED)
    assert book.get(1, 10, LIFE - 1) is not None
    assert book.get(1, 10, LIFE) is None
    book.refresh(1, 10, State.CONFIRMED, now_ms=1_000)
    assert len(told.said) == 1
    book.refresh(1, 10, State.CONFIRMED, now_ms=LIFE // 2)
    assert len(told.said) == 2
    assert book.get(1, 10, LIFE + 1) is not None
    book.refresh(1, 10, State.CONFIRMED, now_ms=2 * LIFE)
    assert book.get(1, 10, 2 * LIFE) is None


def test_another_state_is_shared_at_once_and_a_longer_life_is_never_cut() -> None:
    told = Told()
    book = CacheBook(told)
    book.note(1, 10, State.SENT, life_ms=3_600_000, now_ms=0, shared=False)
    book.refresh(1, 10, State.CONFIRMED, now_ms=1)
    note(book, 1, 10, State.CONFIRMED, 2)
    assert book.get(1, 10, 3_600_000) is not None
    assert [state for *_, state in told.said] == ["CONFIRMED", "CONFIRMED"]


def test_what_is_forgotten_is_told_once_and_only_if_it_was_there() -> None:
    told = Told()
    book = CacheBook(told)
    note(book, 1, 10, State.SENT)
    note(book, 1, 20, State.SENT)
    book.forget(1, 10)
    book.forget(1, 10)
    assert told.said[2:] == [(1, 10, "gone")]
    assert (book.get(1, 10, 1), len(book)) == (None, 1)


def test_what_others_say_is_taken_over_and_not_said_again() -> None:
    told = Told()
    book = CacheBook(told)
    book.heard(1, Entry(10, State.CONFIRMED, LIFE, LIFE))
    assert book.get(1, 10, 1) == Entry(10, State.CONFIRMED, LIFE, LIFE)
    book.lost(1, 10)
    book.lost(1, 10)
    assert (len(book), told.said) == (0, [])


def test_of_too_many_the_first_written_go() -> None:
    book = CacheBook(entries_max=3)
    for at in range(3):
        note(book, at, 10, State.SENT)
    note(book, 0, 10, State.CONFIRMED)
    note(book, 3, 10, State.SENT)
    assert [beginning for beginning, _ in book.all()] == [2, 0, 3]


def test_what_is_over_is_tidied_away_a_little_at_a_time() -> None:
    book = CacheBook()
    for at in range(10):
        note(book, at, 10, State.SENT, at)
    book.tidy(LIFE + 4, at_most=3)
    assert len(book) == 7
    book.tidy(LIFE + 4)
    assert len(book) == 5
