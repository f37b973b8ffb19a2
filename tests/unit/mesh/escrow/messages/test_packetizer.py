from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import AMOUNT_MAX, KEY_CHARS_MAX
from smg_mesh.escrow.messages.founding_messages import FoundVote
from smg_mesh.escrow.messages.messages import (
    PACKET_BYTES_MAX,
    ROWS_MAX,
    AskRow,
    GiveRow,
    LeaseAsk,
    LeaseVote,
    Message,
    Minted,
    RecordsTell,
    RightsAsk,
    RightsGive,
    Stored,
    decode,
    encode,
)
from smg_mesh.escrow.messages.packetizer import fitting, packets

ID = b"r" * 16
TERM = (1 << 44) - 1
KEYS = st.integers(1, KEY_CHARS_MAX).flatmap(lambda size: st.just("k" * size))


def ask(rows: tuple[AskRow, ...]) -> RightsAsk:
    return RightsAsk("n" * 63, 1 << 62, 1 << 40, rows)


def messages(keys: list[str]) -> list[Message]:
    minted = tuple(Minted(key, 1 << 40, AMOUNT_MAX) for key in keys)
    stored = tuple(Stored(key, 1 << 40, AMOUNT_MAX, AMOUNT_MAX) for key in keys)
    return [
        ask(tuple(AskRow(TERM, key, 1 << 40, *(AMOUNT_MAX,) * 7) for key in keys)),
        RightsGive(
            "a", 7, 9, tuple(GiveRow(TERM, key, 1, AMOUNT_MAX, AMOUNT_MAX, 10) for key in keys)
        ),
        LeaseAsk(3, TERM, "a", 7, ID, 2, 99, minted),
        LeaseVote(3, TERM, "b", 7, True, TERM, 99, ID, 2, bytes(8), 9, stored),
    ]


@given(st.lists(KEYS, max_size=ROWS_MAX))
def test_no_packet_is_too_long_and_no_row_is_lost(keys: list[str]) -> None:
    for message in messages(keys):
        packed = packets([message])
        assert all(len(packet) <= PACKET_BYTES_MAX for packet in packed)
        parts = [part for packet in packed for part in decode(packet)]
        assert rows_of(parts) == rows_of([message])
        assert {type(part) for part in parts} == {type(message)}


def rows_of(parts: list[Message]) -> list[object]:
    rows: list[object] = []
    for part in parts:
        match part:
            case RightsAsk(rows=some) | RightsGive(rows=some) | LeaseAsk(minted=some):
                rows += some
            case LeaseVote(stored=some):
                rows += some
            case _:
                pass
    return rows


def test_a_page_of_records_that_is_too_long_is_cut_and_says_so() -> None:
    rows = tuple(Minted("k" * KEY_CHARS_MAX, window, 1) for window in range(ROWS_MAX))
    page = RecordsTell(
        voter="a",
        boot=7,
        asker_boot=8,
        roster=ID,
        roster_version=2,
        asked_ms=9,
        after_key="",
        after_window=0,
        more=False,
        synced=True,
        blind_short_ms=0,
        blind_long_ms=0,
        blind_short_for_ms=0,
        rows=rows,
    )
    (cut,) = fitting(page)
    assert isinstance(cut, RecordsTell)
    assert cut.more
    assert cut.rows == rows[: len(cut.rows)]
    assert len(cut.rows) >= 3


def test_what_fits_stays_as_it_is_and_together() -> None:
    small = [ask(()), ask(())]
    (packet,) = packets(small)
    assert list(decode(packet)) == small


def test_what_goes_to_many_is_encoded_once_and_says_the_same() -> None:
    messages = [FoundVote(bytes(16), "n1", at, True) for at in range(40)]
    known: dict[int, Sequence[bytes]] = {}
    first, second = packets(messages, known), packets(messages[::-1], known)
    assert len(known) == len(messages)
    assert [one for packet in first for one in decode(packet)] == messages
    assert [one for packet in second for one in decode(packet)] == messages[::-1]
    assert all(len(packet) <= PACKET_BYTES_MAX for packet in (*first, *second))


def test_more_messages_than_a_short_head_can_count_are_one_packet() -> None:
    for many in (15, 16, 17):
        messages = [FoundVote(bytes(16), "n1", at, True) for at in range(many)]
        assert encode(messages) == [msgspec.msgpack.encode(messages)]
