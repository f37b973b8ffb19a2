"""What processes and nodes answer about runs that wait, put together and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.cluster.approvals.approval_messages import (
    LIST_BYTES_MAX,
    Reply,
    listed,
    merged,
    pack,
    read_question,
    read_reply,
)
from smg_node.http.ports.tool_approvals import WaitingRun


def run(number: int, arguments: str = "{}") -> WaitingRun:
    name = f"mcpa_{number}"
    return WaitingRun(name, "a", "t", "k", "s", "tool", arguments, False, "m", "r", number, 9)


def test_a_list_that_is_too_long_says_how_many_are_missing() -> None:
    reply = listed((run(number, "\U0001f600" * 600) for number in range(1_000)), left_out=3)
    assert len(pack(reply)) < 1_000_000
    assert len(reply.runs) + reply.left_out == 1_003
    assert [one.since_ms for one in reply.runs] == list(range(len(reply.runs)))
    assert reply.left_out > 3


def test_lists_of_several_processes_are_one_list() -> None:
    own, other = listed([run(2)]), listed([run(3), run(1)], left_out=2)
    told = read_reply(merged([pack(own), b"", pack(other), b"garbage"], ["2-7"]))
    assert told is not None
    assert [one.since_ms for one in told.runs] == [1, 2, 3]
    assert (told.left_out, told.silent) == (2, ("2-7",))


def test_lists_of_several_processes_fit_together() -> None:
    full = pack(listed(run(number, "\U0001f600" * 600) for number in range(1_000)))
    told = merged([full, full], [])
    assert len(told) <= LIST_BYTES_MAX + 10_000


def test_one_run_keeps_its_arguments_on_the_way() -> None:
    long = Reply((run(1, "x" * 64_000),), done=True)
    assert read_reply(merged([b"", pack(long)], [])) == long


def test_who_answered_is_found_among_those_who_know_nothing() -> None:
    told = read_reply(merged([pack(Reply()), pack(Reply(before=True))], []))
    assert told == Reply(before=True)


@given(st.binary(max_size=200))
def test_garbage_is_no_message(said: bytes) -> None:
    question, reply = read_question(said), read_reply(said)
    assert question is None or pack(question)
    assert reply is None or pack(reply)
