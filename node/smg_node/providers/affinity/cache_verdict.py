"""Cache verdict: what an answer's usage says of what was believed of its place's cache, as changes of the book. Pure.

read about what was there         what was read is sure; what is new was kept: surely if it says so
read much less                    what it does not have is forgotten at once; the prompt that was sent counts less
says that nothing was kept        nothing is remembered of it
"""

from typing import Final

from smg_node.core.generation.events import Usage
from smg_node.providers.affinity.cache_book import CacheBook, State
from smg_node.providers.affinity.cache_forecast import Forecast

MISSED: Final = 0.5
"""Less than this share of what should have been there is a miss; vendors count in blocks, and ratios are rough."""
SLACK: Final = 1.1
"""So much longer than what was told a beginning may be by its bytes."""


def note_sent(book: CacheBook, one: Forecast, now_ms: int) -> None:
    """Take in that an answer began: its prompt is in the cache from now on, as far as this node can tell."""
    for kept in one.keeps:
        before = book.get(kept.hash, one.scope, now_ms)
        if before is None or before.state < kept.state:
            book.note(
                kept.hash, one.scope, kept.state, life_ms=kept.life_ms, now_ms=now_ms, shared=False
            )


def note_answered(
    book: CacheBook, one: Forecast, used: Usage | None, now_ms: int, *, marked: bool
) -> None:
    """Take in what an answer cost; `used` is None where it was not told. `marked`: its vendor tells what it keeps."""
    if used is None or used.prompt_tokens <= 0:
        _keep(book, one, {kept.hash: kept.state for kept in one.keeps}, now_ms)
        return
    ratio = used.prompt_tokens / max(1, one.size_bytes)
    read, written = float(used.cached_tokens), float(used.cache_write_tokens)
    expected = [found for found in one.found if found.belief]
    missed = bool(expected) and read < MISSED * expected[0].size_bytes * ratio
    state = State.SENT
    if missed:
        doubted = any(found.entry.state is State.DOUBTED for found in expected)
        state = State.SEEN if doubted else State.DOUBTED
    for found in expected:
        if found.size_bytes * ratio <= read * SLACK:
            book.refresh(found.hash, one.scope, State.CONFIRMED, now_ms=now_ms)
        elif missed:
            book.forget(found.hash, one.scope)
    keeps: dict[int, State] = {}
    for kept in one.keeps:
        size = kept.size_bytes * ratio
        if kept.state is State.SEEN:
            keeps[kept.hash] = State.SEEN
        elif size <= read * SLACK or (written and size <= (read + written) * SLACK):
            keeps[kept.hash] = State.CONFIRMED
        elif marked or state is State.SEEN:
            # It says what it keeps, and this is not of it; or it has lost this twice.
            book.forget(kept.hash, one.scope)
        else:
            keeps[kept.hash] = state
    _keep(book, one, keeps, now_ms)


def _keep(book: CacheBook, one: Forecast, keeps: dict[int, State], now_ms: int) -> None:
    """Write what is in the cache now, and let others know; what they know already seldom."""
    known = {found.hash: found.entry for found in one.found}
    for kept in one.keeps:
        state = keeps.get(kept.hash)
        if state is None:
            continue
        if kept.hash in known and book.get(kept.hash, one.scope, now_ms) is not None:
            book.refresh(kept.hash, one.scope, state, now_ms=now_ms)
        else:
            book.note(kept.hash, one.scope, state, life_ms=kept.life_ms, now_ms=now_ms, shared=True)
