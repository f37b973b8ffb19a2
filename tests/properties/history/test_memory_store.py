from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_storage.errors import StoreError
from smg_storage.memory.rows import ROW_BYTES
from smg_storage.options import Bounds
from smg_storage.records import (
    Conversation,
    EventBlob,
    Idempotency,
    Item,
    Location,
    Patch,
    Side,
    Status,
    StoredResponse,
    Turn,
)
from support.store_contract.stage import Stage, ids
from support.stores.memory_rows import assert_sound, shelf_of, stage_with
from support.tools.example_counts import example_count


@dataclass(slots=True)
class Known:
    """What was made so far, of which some is gone again."""

    stage: Stage
    chance: Random
    conversations: list[Conversation] = field(default_factory=list)
    responses: list[StoredResponse] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)

    @property
    def conversation(self) -> Conversation:
        return self.chance.choice(self.conversations or [self.stage.conversation()])

    @property
    def response(self) -> StoredResponse:
        return self.chance.choice(self.responses or [self.stage.response()])

    @property
    def item(self) -> Item:
        return self.chance.choice(self.items or [self.stage.item()])

    def over_us(self, size: int) -> int:
        """Return when something is over: some of it never."""
        return self.stage.in_s(size) if size % 3 == 0 and size else 0


async def _converse(known: Known, size: int) -> None:
    made = msgspec.structs.replace(known.stage.conversation(), expires_us=known.over_us(size))
    known.conversations.append(made)
    await known.stage.store.create_conversation(known.stage.access, made)


async def _append(known: Known, size: int) -> None:
    made = [
        msgspec.structs.replace(each, document=b"d" * size * 20, expires_us=known.over_us(size))
        for each in known.stage.items(1 + size % 3)
    ]
    known.items.extend(made)
    await known.stage.store.append_items(
        known.stage.access,
        known.conversation.id,
        made,
        now_us=known.stage.now_us,
        expires_us=known.over_us(size),
    )


async def _commit(known: Known, size: int) -> None:
    stage = known.stage
    response = msgspec.structs.replace(
        stage.response(
            status=(Status.COMPLETED, Status.QUEUED)[size % 2],
            background=bool(size % 2),
            conversation_id=known.conversation.id if size % 5 == 0 else "",
            identifier="p" if size % 4 == 0 else "",
        ),
        expires_us=known.over_us(size),
    )
    known.responses.append(response)
    items = [stage.item()] if response.conversation_id else []
    turn = Turn(
        response=response,
        items=items,
        links=ids(items),
        locations=[Location(stage.new_id("msg"), response.id, Side.INPUT, 0)],
        idempotency=Idempotency(f"k{size % 7}", b"d" * 16, known.over_us(size)),
    )
    await stage.store.commit_turn(stage.access, turn)


async def _finish(known: Known, size: int) -> None:
    response = known.response
    done = msgspec.structs.replace(
        response, status=Status.COMPLETED, response=b"f" * size * 20, expires_us=known.over_us(size)
    )
    places = [
        Location(known.stage.new_id("msg"), response.id, Side.OUTPUT, n) for n in range(size % 3)
    ]
    turn = Turn(response=done, locations=places, token=size % 2)
    await known.stage.store.commit_turn(known.stage.access, turn)


async def _patch(known: Known, size: int) -> None:
    patch = Patch(
        status=Status.FAILED, response=b"r" * size * 20, expires_us=known.over_us(size) or None
    )
    await known.stage.store.patch_response(
        known.stage.access,
        known.response.id,
        patch,
        from_statuses=[Status.QUEUED],
        token=size % 3,
    )


async def _wait(known: Known, size: int) -> None:
    known.stage.clock.advance_s(size)


ACTIONS: Final[Sequence[Callable[[Known, int], Awaitable[object]]]] = (
    _converse,
    _append,
    _commit,
    _finish,
    _patch,
    _wait,
    lambda k, n: k.stage.store.link_items(
        k.stage.access, k.conversation.id, [k.item.id], now_us=k.stage.now_us
    ),
    lambda k, n: k.stage.store.update_conversation(
        k.stage.access, k.conversation.id, b"m" * n * 20, now_us=k.stage.now_us
    ),
    lambda k, n: k.stage.store.delete_item(k.stage.access, k.conversation.id, k.item.id),
    lambda k, n: k.stage.store.delete_conversation(k.stage.access, k.conversation.id),
    lambda k, n: k.stage.store.delete_response(k.stage.access, k.response.id),
    lambda k, n: k.stage.store.append_events(
        k.stage.access, k.response.id, [EventBlob(n, n, b"e" * n * 20)], expires_us=k.over_us(n)
    ),
    lambda k, n: k.stage.store.claim_run(
        k.stage.access, k.response.id, "n", now_us=k.stage.now_us, until_us=k.stage.in_s(n)
    ),
    lambda k, n: k.stage.store.purge(now_us=k.stage.now_us, batch=1 + n % 4, timeout_s=1),
    lambda k, n: k.stage.store.delete_identifier_responses(k.stage.access, "p"),
)


@settings(max_examples=example_count(100), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(range(len(ACTIONS))), st.integers(0, 3), st.integers(0, 400)),
        min_size=10,
        max_size=80,
    ),
    seed=st.integers(0, 1 << 16),
)
async def test_whatever_is_done_the_sums_are_right_and_the_bounds_are_kept(
    steps: list[tuple[int, int, int]], seed: int
) -> None:
    bounds = Bounds(responses_max=8, items_max=12, bytes_max=20 * ROW_BYTES, age_max_s=400)
    stage = stage_with(bounds)
    known = Known(stage, Random(seed))
    shelf = shelf_of(stage)
    threads = [stage.begin_thread() for _ in range(4)]
    for action, thread, size in steps:
        stage.thread = threads[thread]
        # What is refused leaves everything as it was.
        with suppress(StoreError):
            await ACTIONS[action](known, size)
        assert_sound(shelf)
        assert shelf.bytes <= bounds.bytes_max
        assert len(shelf.responses) <= bounds.responses_max
        assert len(shelf.items) + len(shelf.locations) <= bounds.items_max
