"""What each operation costs: how many statements, the first time."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from smg_storage.records import (
    EventBlob,
    Idempotency,
    Item,
    Lease,
    Location,
    PageAsk,
    Patch,
    Side,
    Status,
    StoredResponse,
    Turn,
)
from support.store_contract.stage import HOUR_S, Stage
from support.stores.sql_recorder import said


@dataclass(frozen=True, slots=True)
class Scene:
    """What is there before something is asked."""

    conversation_id: str
    items: list[Item]
    loose: Item
    """Linked nowhere."""
    chain: list[StoredResponse]
    run: StoredResponse
    lease: Lease


async def long_chain(stage: Stage, length: int = 200) -> list[StoredResponse]:
    """Keep a chain of responses."""
    chain = [stage.response()]
    for _ in range(length - 1):
        chain.append(stage.response(previous=chain[-1]))
    for response in chain:
        await stage.store.commit_turn(stage.access, Turn(response=response))
    return chain


async def scene(stage: Stage, chain: list[StoredResponse]) -> Scene:
    """Make a conversation of 30 items, an item beside it, and a run that is claimed."""
    stage.begin_thread()
    conversation_id = await stage.new_conversation()
    items = await stage.append(conversation_id, 30)
    run = await stage.kept(stage.running())
    loose = await stage.store.create_item(stage.access, stage.item())
    return Scene(conversation_id, items, loose, chain, run, await stage.claimed(run))


async def count(stage: Stage) -> dict[str, int]:
    """Do each operation on a scene of its own, and count what was said."""
    chain = await long_chain(stage)
    counted = {}
    for name, (_, asked) in COSTS.items():
        known = await scene(stage, chain)
        with said() as statements:
            await asked(stage, known)
        counted[name] = len(statements)
    return counted


def full_turn(stage: Stage, conversation_id: str) -> Turn:
    """Return a turn with everything that there can be in one."""
    turn = stage.turn(conversation_id, items=3)
    return structs.replace(
        turn,
        locations=[Location(turn.items[0].id, turn.response.id, Side.INPUT, 0)],
        idempotency=Idempotency(turn.response.id, b"d" * 16, stage.in_s(HOUR_S)),
    )


Asked = Callable[[Stage, Scene], Awaitable[object]]
_OPEN: Final = (Status.QUEUED, Status.IN_PROGRESS)

COSTS: Final[Mapping[str, tuple[int, Asked]]] = {
    "create_conversation": (
        1,
        lambda s, _: s.store.create_conversation(s.access, s.conversation()),
    ),
    "get_conversation": (1, lambda s, x: s.store.get_conversation(s.access, x.conversation_id)),
    "update_conversation": (
        2,
        lambda s, x: s.store.update_conversation(
            s.access, x.conversation_id, b'{"new":1}', now_us=s.now_us
        ),
    ),
    "delete_conversation": (
        5,
        lambda s, x: s.store.delete_conversation(s.access, x.conversation_id),
    ),
    "create_item": (1, lambda s, _: s.store.create_item(s.access, s.item())),
    "link_items": (
        6,
        lambda s, x: s.store.link_items(s.access, x.conversation_id, [x.loose.id], now_us=s.now_us),
    ),
    "append_items": (
        4,
        lambda s, x: s.store.append_items(
            s.access, x.conversation_id, s.items(20), now_us=s.now_us
        ),
    ),
    "list_items": (1, lambda s, x: s.store.list_items(s.access, x.conversation_id, PageAsk())),
    "list_items_after": (
        1,
        lambda s, x: s.store.list_items(s.access, x.conversation_id, PageAsk(after=x.items[9].id)),
    ),
    "newest_items": (
        1,
        lambda s, x: s.store.newest_items(
            s.access, x.conversation_id, items_max=20, bytes_max=1 << 20
        ),
    ),
    "get_item": (1, lambda s, x: s.store.get_item(s.access, x.items[0].id)),
    "find_items": (1, lambda s, x: s.store.find_items(s.access, [i.id for i in x.items])),
    "is_item_linked": (
        1,
        lambda s, x: s.store.is_item_linked(s.access, x.conversation_id, x.items[0].id),
    ),
    "delete_item": (
        4,
        lambda s, x: s.store.delete_item(s.access, x.conversation_id, x.items[0].id),
    ),
    "commit_turn": (1, lambda s, _: s.store.commit_turn(s.access, s.turn(items=0))),
    "commit_turn_to_a_conversation": (
        5,
        lambda s, x: s.store.commit_turn(s.access, s.turn(x.conversation_id)),
    ),
    "commit_turn_with_everything": (
        8,
        lambda s, x: s.store.commit_turn(s.access, full_turn(s, x.conversation_id)),
    ),
    "commit_turn_of_a_run": (
        2,
        lambda s, x: s.store.commit_turn(
            s.access,
            Turn(
                response=structs.replace(x.run, status=Status.COMPLETED),
                token=x.lease.token,
            ),
        ),
    ),
    "store_response": (1, lambda s, _: s.store.store_response(s.access, s.response())),
    "get_response": (1, lambda s, x: s.store.get_response(s.access, x.run.id)),
    "patch_response": (
        2,
        lambda s, x: s.store.patch_response(
            s.access,
            x.run.id,
            Patch(status=Status.IN_PROGRESS),
            from_statuses=_OPEN,
            token=x.lease.token,
        ),
    ),
    "delete_response": (4, lambda s, x: s.store.delete_response(s.access, x.run.id)),
    "get_response_chain_of_200": (1, lambda s, x: s.chain(x.chain[-1].id)),
    "list_identifier_responses": (
        1,
        lambda s, _: s.store.list_identifier_responses(s.access, "person", PageAsk()),
    ),
    "delete_identifier_responses": (
        1,
        lambda s, _: s.store.delete_identifier_responses(s.access, "person"),
    ),
    "claim_run": (1, lambda s, x: s.claim(x.run)),
    "renew_run": (
        1,
        lambda s, x: s.store.renew_run(s.access, x.lease, until_us=s.in_s(HOUR_S)),
    ),
    "release_run": (1, lambda s, x: s.store.release_run(s.access, x.lease)),
    "orphan_runs": (
        1,
        lambda s, _: s.store.orphan_runs(now_us=s.in_s(HOUR_S), limit=9, timeout_s=30),
    ),
    "request_cancel": (3, lambda s, x: s.store.request_cancel(s.access, x.run.id)),
    "append_events": (
        2,
        lambda s, x: s.store.append_events(
            s.access,
            x.run.id,
            [EventBlob(0, 9, b"a"), EventBlob(10, 19, b"b")],
            expires_us=s.in_s(HOUR_S),
        ),
    ),
    "append_events_of_a_run": (
        2,
        lambda s, x: s.store.append_events(
            s.access,
            x.run.id,
            [EventBlob(0, 9, b"a"), EventBlob(10, 19, b"b")],
            expires_us=s.in_s(HOUR_S),
            token=x.lease.token,
        ),
    ),
    "read_events": (1, lambda s, x: s.store.read_events(s.access, x.run.id, after=-1, limit=9)),
    "reserve_key": (
        1,
        lambda s, x: s.store.reserve_key(
            s.access, Idempotency(x.run.id, b"d" * 16, s.in_s(HOUR_S)), x.run.id, now_us=s.now_us
        ),
    ),
    "release_key": (1, lambda s, x: s.store.release_key(s.access, "key", x.run.id)),
    "tenant_figures": (1, lambda s, _: s.store.tenant_figures(s.access)),
    "ping": (1, lambda s, _: s.store.ping(timeout_s=30)),
    "purge_of_nothing": (
        5,
        lambda s, _: s.store.purge(now_us=s.now_us, batch=500, timeout_s=30),
    ),
}
