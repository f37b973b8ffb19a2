"""What clients and engines wrote down, read again: matched by number, and refused where it does not fit."""

from pathlib import Path

import msgspec
import pytest

from smg_chaos.engine.simulator.call_ledger import Line
from smg_chaos.gameday.limits.clients.trial_records import (
    UNKNOWN,
    Answer,
    Arrival,
    RecordError,
    milliseconds,
    read_answers,
    read_arrivals,
    write_answers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120ms", 120),
        ("1s", 1000),
        ("6m0s", 360_000),
        ("1.5s", 1500),
        ("1d2h", 93_600_000),
        ("", UNKNOWN),
        ("soon", UNKNOWN),
        ("1s later", UNKNOWN),
        ("-1s", UNKNOWN),
        ("12", UNKNOWN),
    ],
)
def test_durations_are_read_as_headers_write_them(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


def test_answers_of_all_clients_come_in_the_order_of_their_sending(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    early, late = Answer(7, 0, 100, 200, 200, "", 40, 39, 10, "exact"), Answer(2, 1, 150, 160, 429)
    write_answers(first, [late])
    write_answers(second, [early])
    assert read_answers([first, second]) == [early, late]
    with pytest.raises(RecordError, match="the same number"):
        read_answers([first, first])
    first.write_bytes(b"\x00")
    with pytest.raises(RecordError, match="is no record of answers"):
        read_answers([first])


def account(path: Path, *lines: Line, end: bytes = b"\n") -> Path:
    path.write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines) + end)
    return path


def test_calls_for_one_request_are_one_arrival_wherever_they_came(tmp_path: Path) -> None:
    one = account(
        tmp_path / "one",
        Line("came", 100, 1, "a", 5, 20, 4),
        Line("ended", 180, 1, "a", 5, 20, 4, 3),
        Line("came", 190, 2, "b", 6, 10, 4),
        Line("came", 195, 2, "probe", -1, 1, 1),
        Line("ended", 196, 2, "probe", -1, 1, 1, 1),
    )
    other = account(
        tmp_path / "other",
        Line("came", 200, 1, "c", 5, 23, 1),
        Line("ended", 220, 1, "c", 5, 23, 1, 1),
    )
    assert read_arrivals([one, other]) == {
        5: Arrival(5, 100, 220, 2, 20, 4),
        6: Arrival(6, 190, UNKNOWN, 1, 10, 0),
    }


def test_only_the_last_line_may_be_cut_off(tmp_path: Path) -> None:
    path = account(tmp_path / "one", Line("came", 100, 1, "a", 5), end=b'\n{"did":"en')
    assert list(read_arrivals([path])) == [5]
    path.write_bytes(b'{"did":"en\n' + path.read_bytes())
    with pytest.raises(RecordError, match="line 1"):
        read_arrivals([path])


def test_what_ended_and_never_came_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="request 5 ended and never came"):
        read_arrivals([account(tmp_path / "one", Line("ended", 100, 1, "a", 5))])
