"""Order of an answer with runs: what a pass says, then the results of its calls, in their order, whenever events come."""

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Fail,
    Finish,
    FinishReason,
    RunEnd,
    RunNote,
    RunStart,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult
from smg_node.dialects.messages.tool_runs.run_order import RunOrder

BEGIN = Begin("1", "m", 5, 3)
OURS = ToolOwner("docs", "find")
HIDDEN = ToolOwner("docs", "audit", hidden=True)


def text(block: int, said: str = "x", *, number: int = 1) -> list[Event]:
    return [
        BlockStart(0, block, "text", round=number),
        Delta(0, block, said),
        BlockEnd(0, block, "text", said, round=number),
    ]


def call(block: int, owner: ToolOwner | None = OURS, *, number: int = 1) -> list[Event]:
    return [
        BlockStart(0, block, "call", "f", f"c{block}", owner=owner, round=number),
        Delta(0, block, "{}"),
        BlockEnd(0, block, "call", "{}", "f", f"c{block}", owner=owner, round=number),
    ]


def start(block: int) -> list[Event]:
    return [RunStart(0, block), RunNote(0, block)]


def end(block: int, *, spoken: bool = False) -> list[Event]:
    return [RunEnd(0, block, RunResult("r"), spoken)]


def finish(reason: FinishReason = "stop") -> list[Event]:
    return [Finish(0, reason)]


def shown(order: RunOrder, *events: list[Event]) -> str:
    """Return what is shown now: blocks by number, letters for what they are, `!` for a result."""
    told = ""
    for batch in events:
        for event in order.feed(batch):
            match event:
                case BlockStart():
                    told += f"{event.kind[0]}{event.block} "
                case RunStart():
                    assert told.endswith(f"c{event.block} ")
                case RunEnd():
                    told += f"!{event.block} "
                case Finish() | Fail():
                    told += "end"
                case _:
                    assert isinstance(event, Begin | Delta | BlockEnd)
    return told.strip()


def order(*, calls_last: bool = True) -> RunOrder:
    made = RunOrder(calls_last=calls_last)
    made.feed([BEGIN])
    return made


def test_what_comes_before_its_turn_waits() -> None:
    one = order()
    assert shown(one, text(0), call(1)) == "t0"
    assert shown(one, start(1)) == "c1"
    assert shown(one, call(2)) == ""
    assert shown(one, start(2), text(3)) == "c2 t3"
    assert shown(one, end(2)) == ""
    assert shown(one, text(4, number=2)) == ""
    assert shown(one, end(1)) == "!1 !2 t4"
    assert shown(one, text(5, number=2), finish()) == "t5 end"


def test_results_come_when_their_pass_says_nothing_more() -> None:
    one = order()
    assert shown(one, call(0), start(0), end(0)) == "c0"
    assert shown(one, call(1), start(1), call(2), start(2)) == "c1 c2"
    assert shown(one, end(2, spoken=True)) == "!0"
    assert shown(one, end(1, spoken=True)) == "!1 !2"
    assert shown(one, call(3, number=2), start(3)) == "c3"
    assert shown(one, end(3)) == ""
    assert shown(one, text(4, number=3)) == "!3 t4"


def test_a_text_goes_on_while_it_is_printed() -> None:
    one = order()
    first, delta, last = text(0)
    assert one.feed([first]) == [first]
    assert one.feed([delta]) == [delta]
    assert one.feed([last]) == [last]


def test_a_text_whose_turn_comes_while_it_is_printed_goes_on_from_there() -> None:
    one = order()
    first, delta, last = text(1, number=2)
    shown(one, call(0), start(0))
    assert one.feed([first, delta]) == []
    assert one.feed(end(0)) == [*end(0), first, delta]
    assert one.feed([last]) == [last]


def test_calls_of_the_client_are_last() -> None:
    one = order()
    assert shown(one, call(0, None), call(1), start(1), call(2, None)) == "c1"
    assert shown(one, end(1), text(3)) == "t3"
    assert shown(one, finish("tool_calls")) == "!1 c0 c2 end"


def test_where_there_can_be_one_call_it_does_not_wait() -> None:
    one = order(calls_last=False)
    assert shown(one, call(0, None)) == "c0"


def test_a_hidden_run_leaves_no_trace() -> None:
    one = order()
    assert shown(one, call(0, HIDDEN), start(0), text(1), end(0), finish()) == "t1 end"


def test_a_call_that_is_never_run_is_shown_only_where_the_answer_pauses() -> None:
    assert shown(order(), call(0), text(1), finish("length")) == "t1 end"
    assert shown(order(), call(0), start(0), end(0), call(1), finish("pause")) == "c0 c1 !0 end"


def test_a_failure_shows_what_was_run() -> None:
    one = order()
    broken: list[Event] = [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "x"))]
    assert shown(one, call(0), start(0), call(1, None)) == "c0"
    assert shown(one, end(0), call(2), broken) == "!0 c1 end"
