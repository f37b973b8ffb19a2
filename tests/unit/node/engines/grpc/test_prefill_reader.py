"""What the first engine of a pair says of a prompt, whatever else its stream holds."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.contracts.kv_transfer import TRANSFER_MAX_BYTES, checked
from smg_node.engines.contracts.wire import Message
from smg_node.engines.engine import Prefilled
from smg_node.engines.grpc.prefill_reader import HandoverReader

PARAMS = '{"do_remote_prefill": true, "remote_block_ids": [[1, 2]], "remote_host": "p"}'
ECHO = (IdLogprob(5, None), IdLogprob(6, -0.5, ((6, -0.5),)))


def complete(reason: str = "length", *ids: int, transfer: str = "") -> Message:
    return Message(0, ids, final=True, reason=reason, transfer=transfer)


def read(messages: Sequence[Message], **sampling: int) -> Prefilled:
    reader = HandoverReader.of(Sampling(max_tokens=1, **sampling))  # type: ignore[arg-type]  # counts only
    for message in messages:
        reader.feed(message)
    assert reader.end() == []
    return reader.prefilled


def test_everything_is_gathered_from_the_messages_that_say_it() -> None:
    first = Message(0, (9,), prompt_tokens=4, cached_tokens=3, prompt_logprobs=ECHO)
    last = Message(0, (9,), final=True, reason="length", prompt_tokens=5, transfer=PARAMS)
    assert read([first, last], prompt_logprobs=1) == Prefilled(5, 3, ECHO, PARAMS)


def test_what_was_not_said_stays_unsaid() -> None:
    assert read([complete()]) == Prefilled()
    assert read([Message(0, ()), complete("stop", 9)]) == Prefilled()


def test_an_echo_nobody_asked_for_is_dropped() -> None:
    assert read([Message(0, (9,), prompt_logprobs=ECHO), complete()]).prompt_logprobs == ()


def test_what_is_said_after_the_end_counts_no_more() -> None:
    said = read([complete(transfer=PARAMS), complete(transfer="{}"), Message(0, (1,))])
    assert said == Prefilled(transfer=PARAMS)


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_first_token_that_ends_the_answer_is_no_failure(reason: str) -> None:
    assert read([complete(reason, 9, transfer="{}")]).transfer == "{}"


@pytest.mark.parametrize(
    ("reason", "code"),
    [("abort", "upstream_abort"), ("error", "upstream_error"), ("huh", None)],
)
def test_an_end_without_a_prompt_worked_off_is_a_failure(reason: str, code: str | None) -> None:
    with pytest.raises(SmgError) as raised:
        read([Message(0, (9,)), complete(reason, transfer=PARAMS)])
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
    assert code is None or raised.value.code == code


def test_a_stream_that_ends_before_is_cut() -> None:
    with pytest.raises(SmgError) as raised:
        read([Message(0, (9,), prompt_tokens=4)])
    assert raised.value.code == "upstream_cut"


@pytest.mark.parametrize("by_word", [True, False])
def test_a_prompt_dropped_on_our_own_wish_was_not_worked_off(*, by_word: bool) -> None:
    reader = HandoverReader.of(Sampling(max_tokens=1))
    reader.aborted = True
    with pytest.raises(SmgError) as raised:
        reader.feed(complete("abort")) if by_word else reader.end()
    assert raised.value.code == "upstream_abort"


def test_a_wish_to_drop_that_came_too_late_changes_nothing() -> None:
    reader = HandoverReader.of(Sampling(max_tokens=1))
    reader.feed(complete("length", 9, transfer=PARAMS))
    reader.aborted = True
    assert reader.end() == []
    assert reader.prefilled.transfer == PARAMS


@pytest.mark.parametrize(
    "text", ["[]", '"x"', "7", "null", "{", '{"a":}', "{}{}", "[" * 100_000, '{"a":' * 100_000]
)
def test_a_word_for_the_partner_that_is_no_object_is_the_engines_mistake(text: str) -> None:
    with pytest.raises(SmgError) as raised:
        read([complete(transfer=text)])
    assert (raised.value.kind, raised.value.code) == (
        ErrorKind.UPSTREAM_FAILED,
        "upstream_transfer",
    )


def test_a_word_for_the_partner_has_a_largest_size() -> None:
    room = TRANSFER_MAX_BYTES - len('{"a":""}')
    assert checked('{"a":"' + "x" * room + '"}')
    for filling in ("x" * (room + 1), "é" * (room // 2 + 1)):
        with pytest.raises(SmgError, match="4194304 bytes"):
            checked('{"a":"' + filling + '"}')


@given(
    st.lists(
        st.builds(
            Message,
            choice=st.integers(0, 1),
            ids=st.lists(st.integers(0, 9), max_size=2).map(tuple),
            final=st.booleans(),
            reason=st.sampled_from(["stop", "length", "abort", "", "other"]),
            prompt_tokens=st.integers(-1, 9),
            cached_tokens=st.integers(-1, 9),
            transfer=st.sampled_from(["", PARAMS, "{}", "["]),
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_any_messages_give_a_prompt_worked_off_or_a_failure(
    messages: list[Message],
    aborted: bool,
) -> None:
    reader = HandoverReader.of(Sampling(max_tokens=1))
    reader.aborted = aborted
    failed: SmgError | None = None
    try:
        for message in messages:
            reader.feed(message)
        reader.end()
    except SmgError as error:
        failed = error
    ends = [one for one in messages if one.final]
    if failed is None:
        assert ends, "only an end says that the prompt was worked off"
        assert ends[0].reason in ("stop", "length")
        assert reader.prefilled.transfer == ends[0].transfer
    else:
        assert failed.kind is ErrorKind.UPSTREAM_FAILED
