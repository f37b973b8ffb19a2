"""Chunks never repeat and never lie, whatever an engine's last message repeats."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.engines.contracts.sampling_rules import LOGPROB_UNKNOWN
from smg_node.engines.contracts.wire import Message
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.stream_reader import StreamReader, UnknownFinishError, aligned, best
from support.engines.engine_bench import PB

# What `complete` repeats after chunks: the measured rows, one per servicer.
SHAPES = {
    "mlx": (Contract.MLX, "nothing"),
    "vllm python": (Contract.VLLM, "last delta"),
    "vllm rust": (Contract.VLLM, "everything"),
    "sglang": (Contract.SGLANG, "last delta"),
    "trtllm": (Contract.TRTLLM, "everything"),
    "tokenspeed": (Contract.TOKENSPEED, "last delta"),
}


def chunk(contract: Contract, choice: int, ids: Sequence[int]) -> bytes:
    pb = PB[contract]
    index = {"sequence_index" if contract is Contract.TRTLLM else "index": choice}
    part = pb.GenerateStreamChunk(token_ids=ids, prompt_tokens=4, cached_tokens=1, **index)
    data: bytes = pb.GenerateResponse(chunk=part).SerializeToString()
    return data


def complete(contract: Contract, choice: int, ids: Sequence[int], reason: str) -> bytes:
    pb, own = PB[contract], contract is Contract.TRTLLM
    fields: dict[str, Any] = {
        "sequence_index" if own else "index": choice,
        "output_token_ids" if own else "output_ids": ids,
    }
    part = pb.GenerateComplete(finish_reason=reason, prompt_tokens=4, cached_tokens=1, **fields)
    data: bytes = pb.GenerateResponse(complete=part).SerializeToString()
    return data


def cuts(ids: Sequence[int], borders: Sequence[int]) -> list[list[int]]:
    """Cut ids at the borders, empty pieces included."""
    at = [0, *sorted(border % (len(ids) + 1) for border in borders), len(ids)]
    return [list(ids[start:end]) for start, end in pairwise(at)]


def stream(shape: str, choice: int, pieces: Sequence[Sequence[int]], reason: str) -> list[bytes]:
    contract, repeats = SHAPES[shape]
    whole = [token_id for piece in pieces for token_id in piece]
    said = [list(piece) for piece in pieces if piece or shape == "tokenspeed"]
    again = {"nothing": [], "last delta": said[-1] if said else [], "everything": whole}[repeats]
    if not any(said):  # no chunk had ids: what the complete has is all there is
        again = []
    return [chunk(contract, choice, piece) for piece in said] + [
        complete(contract, choice, again, reason)
    ]


def read(contract: Contract, reader: StreamReader, messages: Sequence[bytes]) -> list[Chunk]:
    wire, found = WIRES[contract](), []
    for data in messages:
        message = wire.read(data)
        if message is not None and (one := reader.feed(message)) is not None:
            found.append(one)
    found += reader.end()
    return found


def ids_of(chunks: Sequence[Chunk], choice: int) -> list[int]:
    return [token_id for one in chunks if one.choice == choice for token_id in one.ids]


IDS = st.lists(st.integers(min_value=0, max_value=2**32 - 1), max_size=12)
BORDERS = st.lists(st.integers(min_value=0, max_value=50), max_size=6)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(ids=IDS, borders=BORDERS)
def test_every_cutting_of_the_same_ids_gives_each_id_once(
    shape: str, ids: list[int], borders: list[int]
) -> None:
    contract = SHAPES[shape][0]
    reader = StreamReader(1)
    chunks = read(contract, reader, stream(shape, 0, cuts(ids, borders), "length"))

    assert ids_of(chunks, 0) == ids
    assert [one.finish for one in chunks if one.finish] == ["length"]
    assert reader.over


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(answers=st.lists(st.tuples(IDS, BORDERS), min_size=2, max_size=4), data=st.data())
def test_choices_that_interleave_do_not_mix(
    shape: str, answers: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    contract = SHAPES[shape][0]
    waiting = [
        stream(shape, choice, cuts(ids, borders), "stop")
        for choice, (ids, borders) in enumerate(answers)
    ]
    messages: list[bytes] = []
    while any(waiting):
        turn = data.draw(st.sampled_from([one for one in waiting if one]))
        messages.append(turn.pop(0))

    chunks = read(contract, StreamReader(len(answers)), messages)

    for choice, (ids, _) in enumerate(answers):
        assert ids_of(chunks, choice) == ids
    assert sorted(one.choice for one in chunks if one.finish) == list(range(len(answers)))


@pytest.mark.parametrize("shape", SHAPES)
@given(ids=IDS)
def test_an_answer_in_one_piece_has_its_ids_from_the_complete(shape: str, ids: list[int]) -> None:
    contract = SHAPES[shape][0]
    chunks = read(contract, StreamReader(1), [complete(contract, 0, ids, "stop")])
    assert ids_of(chunks, 0) == ids
    assert len(chunks) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_that_ends_twice_ends_once_and_late_chunks_are_ignored(shape: str) -> None:
    contract = SHAPES[shape][0]
    messages = [*stream(shape, 0, [[1], [2]], "stop"), chunk(contract, 0, [3])]
    messages.append(complete(contract, 0, [1, 2, 3], "length"))
    chunks = read(contract, StreamReader(1), messages)
    assert ids_of(chunks, 0) == [1, 2]
    assert [one.finish for one in chunks if one.finish] == ["stop"]


def test_a_first_chunk_without_ids_does_not_hide_the_ids_of_the_complete() -> None:
    messages = [chunk(Contract.SGLANG, 0, []), complete(Contract.SGLANG, 0, [5, 6], "stop")]
    assert ids_of(read(Contract.SGLANG, StreamReader(1), messages), 0) == [5, 6]


def test_usage_is_passed_on_where_a_message_has_it() -> None:
    reader = StreamReader(1)
    first = reader.feed(Message(0, (1,), prompt_tokens=12, cached_tokens=8))
    last = reader.feed(Message(0, (), final=True, reason="stop"))
    assert first is not None
    assert last is not None
    assert (first.prompt_tokens, first.cached_tokens) == (12, 8)
    assert (last.prompt_tokens, last.cached_tokens) == (-1, -1)


def final(reason: str, matched: int | str | None = None) -> Message:
    return Message(0, (), final=True, reason=reason, matched=matched)


@pytest.mark.parametrize(
    ("message", "finish"),
    [
        (final("stop"), "stop"),
        (final("stop", 99), "stop"),
        (final("stop", 0), "stop"),
        (final("stop", ""), "stop"),
        (final("stop", 7), "stop_sequence"),
        (final("stop", "END"), "stop_sequence"),
        (final("stop_word"), "stop_sequence"),
        (final("tool_calls"), "stop"),
        (final("length"), "length"),
        (final("length", 7), "length"),
    ],
)
def test_how_a_choice_may_end(message: Message, finish: str) -> None:
    found = StreamReader(1, stop_ids=(7,)).feed(message)
    assert found is not None
    assert (found.finish, found.matched) == (finish, message.matched)


@pytest.mark.parametrize(
    ("reason", "code"), [("abort", "upstream_abort"), ("error", "upstream_error")]
)
def test_an_engine_that_gives_up_is_a_failure(reason: str, code: str) -> None:
    with pytest.raises(SmgError) as raised:
        StreamReader(1).feed(final(reason))
    assert (raised.value.kind, raised.value.code) == (ErrorKind.UPSTREAM_FAILED, code)
    assert not isinstance(raised.value, UnknownFinishError)


@pytest.mark.parametrize("reason", ["", "content_filter", "x" * 1000, "stop\n", "STOP"])
def test_an_end_nobody_has_heard_of_is_a_failure_that_names_it(reason: str) -> None:
    with pytest.raises(UnknownFinishError) as raised:
        StreamReader(1).feed(final(reason))
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
    assert raised.value.reason == reason[:64]
    assert len(raised.value.message) < 200


def test_a_stream_that_ends_ok_too_early_is_a_failure() -> None:
    reader = StreamReader(2)
    reader.feed(Message(0, (1,)))
    reader.feed(final("stop"))
    with pytest.raises(SmgError) as raised:
        reader.end()
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
    assert not reader.over


def test_a_stream_without_a_message_is_a_failure() -> None:
    with pytest.raises(SmgError):
        StreamReader(1).end()


@pytest.mark.parametrize("says_so", [True, False])
def test_our_own_abort_ends_every_open_choice_in_silence(says_so: bool) -> None:
    reader = StreamReader(2)
    reader.feed(final("stop"))
    reader.aborted = True
    told = reader.feed(Message(1, (), final=True, reason="abort")) if says_so else None
    ends = [*([told] if told else []), *reader.end()]
    assert [(one.choice, one.finish) for one in ends] == [(1, "abort")]
    assert reader.over
    assert reader.end() == ()


def test_a_choice_nobody_asked_for_is_a_failure() -> None:
    with pytest.raises(SmgError):
        StreamReader(2).feed(Message(2, (1,)))


def test_ids_outside_any_vocabulary_pass_through() -> None:
    found = StreamReader(1).feed(Message(0, (2**32 - 1,)))
    assert found is not None
    assert found.ids == (2**32 - 1,)


LOGPROBS = (
    IdLogprob(1, -0.5, ((9, -3.0), (1, -0.5), (8, -1.0))),
    IdLogprob(2, -0.25, ((2, -0.25),)),
)


def test_log_probabilities_go_with_their_ids_and_are_cut_to_what_was_asked_for() -> None:
    found = StreamReader(1, logprobs=2).feed(Message(0, (1, 2), logprobs=LOGPROBS))
    assert found is not None
    assert found.logprobs == (
        IdLogprob(1, -0.5, ((1, -0.5), (8, -1.0))),
        IdLogprob(2, -0.25, ((2, -0.25),)),
    )


def test_log_probabilities_nobody_asked_for_are_dropped() -> None:
    found = StreamReader(1, prompt_logprobs=0).feed(Message(0, (1, 2), logprobs=LOGPROBS))
    assert found is not None
    assert found.logprobs == ()


def test_log_probabilities_of_a_complete_that_only_repeats_are_dropped_with_its_ids() -> None:
    reader = StreamReader(1, logprobs=2)
    reader.feed(Message(0, (1, 2), logprobs=LOGPROBS))
    last = reader.feed(Message(0, (2,), final=True, reason="stop", logprobs=LOGPROBS[1:]))
    assert last is not None
    assert (last.ids, last.logprobs) == ((), ())


def test_log_probabilities_that_servicers_left_out_are_filled_in() -> None:
    assert aligned((1, 5, 2), LOGPROBS) == [
        LOGPROBS[0],
        IdLogprob(5, LOGPROB_UNKNOWN),
        LOGPROBS[1],
    ]


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_there_is_one_log_probability_for_each_id(ids: list[int], known: list[int]) -> None:
    found = aligned(ids, [IdLogprob(one, -1.0) for one in known])
    assert [one.token_id for one in found] == ids


def test_no_alternatives_are_asked_for_and_none_given() -> None:
    assert best(LOGPROBS[0], 0) == IdLogprob(1, -0.5)
    assert best(IdLogprob(1, -0.5), 3) == IdLogprob(1, -0.5)


def test_log_probabilities_of_the_prompt_come_once_for_each_choice() -> None:
    reader = StreamReader(2, prompt_logprobs=1)
    prompt = (IdLogprob(4, None), *LOGPROBS)
    first = reader.feed(Message(0, (), prompt_logprobs=prompt))
    again = reader.feed(Message(0, (1,), prompt_logprobs=prompt))
    other = reader.feed(Message(1, (1,), prompt_logprobs=prompt))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.prompt_logprobs[0] == IdLogprob(4, None)
    assert first.prompt_logprobs[1].top == ((1, -0.5),)
    assert again.prompt_logprobs == ()
    assert other.prompt_logprobs == first.prompt_logprobs
