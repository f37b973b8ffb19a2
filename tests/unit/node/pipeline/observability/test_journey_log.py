import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.journey import Broke, Chosen, Journey, Ran
from smg_node.pipeline.observability.journey_log import (
    ENTRIES_MAX,
    JOURNEY_BYTES_MAX,
    SAME_ID_MAX,
    Journal,
    pack,
    unpack,
)
from smg_node.pipeline.observability.refusals import NAMES_MAX, REFUSALS_MAX
from smg_node.pipeline.observability.tool_run_log import RUNS_MAX
from support.http.journeys import BEGAN_MS, broke, chosen, crowded, outcome, told, vast


def ids(journal: Journal, wanted: str) -> list[int]:
    return [journey.began_ms for journey in journal.get(wanted)]


def test_a_journey_is_told_while_it_goes_on_and_after_its_end() -> None:
    journal = Journal("a")
    journey = journal.begin("req_1", "chat", "alias", BEGAN_MS)
    journey.add(chosen())
    (seen,) = journal.get("req_1")
    assert (seen.node, seen.model, seen.ended_ms, seen.kind) == ("a", "alias", None, "")
    assert seen.steps == [chosen()]
    journey.add(broke())
    journal.end(journey, outcome("failed", error_code="upstream_error", status=502), BEGAN_MS + 90)
    (seen,) = journal.get("req_1")
    assert seen.steps == [chosen(), broke()]
    assert (seen.kind, seen.code, seen.status) == ("failed", "upstream_error", 502)
    assert (seen.prompt_tokens, seen.cached_tokens, seen.completion_tokens) == (4600, 4096, 96)
    assert (seen.model, seen.ended_ms, seen.ttft_ms) == ("m", BEGAN_MS + 90, 118)
    assert journal.get("req_2") == ()


def test_a_request_that_was_never_placed_keeps_the_model_it_asked_for() -> None:
    journal = Journal("a")
    journey = journal.begin("req_1", "chat", "nonesuch", BEGAN_MS)
    gone = outcome(
        "refused", model="", first_token_s=None, error_code="model_not_found", status=404
    )
    journal.end(journey, gone, BEGAN_MS)
    (seen,) = journal.get("req_1")
    assert (seen.model, seen.ttft_ms, seen.code) == ("nonesuch", None, "model_not_found")


def test_the_oldest_go_first_and_leave_nothing_behind() -> None:
    journal = Journal("a", entries_max=3)
    for number in range(8):
        told(journal, f"req_{number}", BEGAN_MS + number, answer=f"{number:032x}")
    assert [bool(journal.get(f"req_{number}")) for number in range(8)] == [False] * 5 + [True] * 3
    assert journal.get(f"chatcmpl-{1:032x}") == ()
    assert len(journal) == 3
    full = journal.kept_bytes
    for number in range(8, 20):
        told(journal, f"req_{number}", BEGAN_MS + number, answer=f"{number:032x}")
    assert abs(journal.kept_bytes - full) <= 30


def test_bytes_are_a_bound_of_their_own() -> None:
    one = Journal("a")
    told(one, "req_0")
    journal = Journal("a", bytes_max=5 * one.kept_bytes)
    for number in range(9):
        told(journal, f"req_{number}")
    assert len(journal) == 5
    assert journal.kept_bytes <= 5 * one.kept_bytes
    assert journal.get("req_3") == ()
    assert journal.get("req_4")


def test_a_client_may_use_one_id_for_all_its_requests() -> None:
    journal = Journal("a", entries_max=40)
    for number in range(100):
        told(journal, "same", BEGAN_MS + number)
    assert ids(journal, "same") == [BEGAN_MS + 99 - at for at in range(SAME_ID_MAX)]
    open_one = journal.begin("same", "chat", "m", BEGAN_MS + 100)
    assert ids(journal, "same")[:2] == [BEGAN_MS + 100, BEGAN_MS + 99]
    journal.end(open_one, outcome(), BEGAN_MS + 200)
    assert len(journal) == 40
    for number in range(40):
        told(journal, f"other_{number}")
    assert journal.get("same") == ()


def test_the_id_of_an_answer_finds_its_request() -> None:
    journal = Journal("a")
    answer = "0198" * 8
    told(journal, "req_1", answer=answer)
    under_way = journal.begin("req_2", "completions", "m", BEGAN_MS)
    under_way.answer = "77"
    for wanted in (answer, f"chatcmpl-{answer}", f"cmpl-{answer}"):
        assert [journey.request_id for journey in journal.get(wanted)] == ["req_1"]
    assert [journey.request_id for journey in journal.get("cmpl-77")] == ["req_2"]


def test_the_end_of_an_id_does_not_find_another_request() -> None:
    journal = Journal("a")
    told(journal, "1")
    assert journal.get("req-1") == ()
    assert journal.get("") == ()
    assert journal.get("-") == ()
    told(journal, "x", answer="1")
    assert [journey.request_id for journey in journal.get("req-1")] == ["x"]
    assert [journey.request_id for journey in journal.get("1")] == ["x", "1"]


def test_more_requests_at_once_than_are_kept_forget_the_oldest_until_it_ends() -> None:
    journal = Journal("a", entries_max=2)
    first, *_ = [journal.begin(f"req_{number}", "chat", "m", number) for number in range(3)]
    assert journal.get("req_0") == ()
    assert len(journal) == 2
    journal.end(first, outcome(), 9)
    assert journal.get("req_0")[0].ended_ms == 9
    assert len(journal) == 3


def test_the_largest_journey_is_cut_to_its_bound_and_keeps_both_its_ends() -> None:
    journey = vast("req_1")
    journey.unplaced = (("w-1", "é" * 5000),) * 16
    packed = pack(journey)
    assert len(packed) <= JOURNEY_BYTES_MAX
    seen = unpack(packed)
    assert len(journey.steps) == len(seen.steps) + seen.more - journey.more
    assert isinstance(seen.steps[0], Chosen)
    assert seen.steps[0].worker == "w-0"
    assert seen.steps[0].rated == crowded("w-0").rated[:4]
    assert isinstance(seen.steps[-1], Broke)
    assert seen.steps[-1].worker == "w-127"
    assert journey.more == 5


def test_what_engines_say_is_cut_and_half_characters_do_no_harm() -> None:
    journal = Journal("a")
    journey = journal.begin("req_1", "chat", "m\ud800", BEGAN_MS)
    journey.add(broke(message="x" * 10_000, code="c" * 500))
    journey.add(chosen(dropped=(("w-1", "half \udfff"),)))
    journal.end(journey, outcome(model=""), BEGAN_MS)
    (seen,) = journal.get("req_1")
    first, second = seen.steps
    assert isinstance(first, Broke)
    assert (len(first.message), len(first.code)) == (256, 64)
    assert isinstance(second, Chosen)
    assert second.dropped == (("w-1", "half ?"),)
    assert seen.model == "m?"


def test_journeys_of_newer_and_older_nodes_are_understood() -> None:
    journey = told(Journal("a"), "req_1", answer="77")
    journey.unplaced = (("w-1", "breaker open"),)
    fields = msgspec.msgpack.decode(pack(journey))
    newer = msgspec.msgpack.encode([*fields, "a field of tomorrow"])
    assert unpack(newer) == journey
    older = msgspec.msgpack.encode(fields[:-7])
    assert unpack(older) == msgspec.structs.replace(journey, answer="", unplaced=())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_journey_or_a_value_error(garbage: bytes) -> None:
    try:
        assert isinstance(unpack(garbage), Journey)
    except ValueError:
        return


def test_a_bent_journey_is_refused() -> None:
    packed = pack(told(Journal("a"), "req_1"))
    for cut in range(len(packed)):
        with pytest.raises(ValueError, match="no journey"):
            unpack(packed[:cut])


def test_a_full_journal_of_crowded_requests_takes_at_most_20_mb() -> None:
    """The requests of a fleet of 64 workers, each placed twice: the largest that is usual."""
    steps: list[Chosen | Broke] = [crowded("w-1"), broke(), crowded("w-2")]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        journal = Journal("a")
        for number in range(ENTRIES_MAX):
            journey = journal.begin(f"req_{number:032x}", "chat", "llama", BEGAN_MS + number)
            journey.answer = f"{number:032x}"
            journey.steps = list(steps)
            journal.end(journey, outcome(), BEGAN_MS + number)
            del journey
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= 20_000_000
    assert len(journal) >= 5_000
    assert taken <= 1.15 * journal.kept_bytes


# ── Refused requests, and names of answers ───────────────────────────────────


def refuse(journal: Journal, request_id: str, error: SmgError, began_ms: int = BEGAN_MS) -> None:
    said = {"began_ms": began_ms, "ended_ms": began_ms + 2}
    journal.refusals.add(request_id, "chat", "m", error, **said)


def test_a_refused_request_is_a_short_journey_with_the_reason() -> None:
    journal = Journal("a")
    refuse(journal, "req_1", invalid("messages must not be empty", "messages"))
    (seen,) = journal.get("req_1")
    assert (seen.node, seen.dialect, seen.model, seen.kind) == ("a", "chat", "m", "refused")
    assert (seen.status, seen.code) == (400, "invalid_value")
    assert (seen.message, seen.steps) == ("messages must not be empty", [])
    assert (seen.began_ms, seen.ended_ms) == (BEGAN_MS, BEGAN_MS + 2)
    assert unpack(pack(seen)) == seen


def test_a_refusal_that_a_journey_tells_is_told_once() -> None:
    journal = Journal("a")
    full = SmgError(ErrorKind.OVERLOADED, "no worker could be had", code="no_worker")
    journey = journal.begin("req_1", "chat", "m", BEGAN_MS + 1)
    ended = outcome("refused", error_code="no_worker", status=503)
    journal.end(journey, ended, BEGAN_MS + 2)
    refuse(journal, "req_1", full)
    assert [one.began_ms for one in journal.get("req_1")] == [BEGAN_MS + 1]
    # Of the same client, who gives all its requests one id.
    refuse(journal, "req_1", full, BEGAN_MS + 50)
    refuse(journal, "req_1", invalid("no", "n"), BEGAN_MS - 50)
    assert [one.began_ms - BEGAN_MS for one in journal.get("req_1")] == [50, 1, -50]


def test_refusals_are_bounded_and_short() -> None:
    journal = Journal("a")
    for number in range(REFUSALS_MAX + 1):
        refuse(journal, f"req_{number}", invalid("x" * 1000 + "\udc80", "x"))
    assert journal.get("req_0") == ()
    (seen,) = journal.get("req_1")
    assert seen.message == "x" * 256
    refuse(journal, "odd", invalid("half a character: \udc80", "x"))
    assert journal.get("odd")[0].message == "half a character: ?"


def test_a_stored_answer_leads_to_the_journey_of_its_request() -> None:
    journal = Journal("a")
    told(journal, "req_1", BEGAN_MS)
    journal.answers.add("resp_1", "req_1")
    journal.answers.add("resp_2", "req_2")
    refuse(journal, "req_2", invalid("no", "x"))
    assert journal.get("resp_1") == journal.get("req_1")
    assert [one.kind for one in journal.get("resp_2")] == ["refused"]
    assert journal.get("resp_3") == ()
    for number in range(NAMES_MAX):
        journal.answers.add(f"resp_x{number}", "req_x")
    assert journal.get("resp_1") == ()


def test_a_journey_of_the_release_before_is_read_and_reads_ours() -> None:
    added = ("message", "bills", "runs", "pictures", "processor")
    fields = [name for name in Journey.__struct_fields__ if name not in added]
    before = msgspec.defstruct("Before", fields, array_like=True)
    ours = Journey("req_1", "a", "chat", "m", BEGAN_MS, message="why")
    theirs: Any = msgspec.msgpack.decode(pack(ours), type=before)
    assert theirs.request_id == "req_1"
    assert unpack(msgspec.msgpack.encode(theirs)) == msgspec.structs.replace(ours, message="")


def ran(tool: str = "search", **changes: Any) -> Ran:
    given = {"verdict": "allow", "rule": "default", "outcome": "ok", "ms": 12, **changes}
    return Ran(BEGAN_MS, "docs", tool, **given)


def test_runs_of_tools_are_told_with_the_first_journey_of_their_request() -> None:
    journal = Journal("a")
    told(journal, "req_1")
    journal.ran("req_1", ran())
    journal.ran("req_1", ran("write", verdict="deny", rule="r" * 500, outcome="refused"))
    journal.ran("req_2", ran())
    told(journal, "req_1")
    second, first = journal.get("req_1")
    assert second.runs == ()
    assert [(run.tool, run.outcome) for run in first.runs] == [
        ("search", "ok"),
        ("write", "refused"),
    ]
    assert len(first.runs[1].rule) == 64
    assert unpack(pack(first)) == first
    assert journal.get("req_2") == ()


def test_a_journey_with_more_runs_than_fit_is_cut_to_its_bound() -> None:
    journal = Journal("a")
    told(journal, "req_1")
    for number in range(RUNS_MAX + 10):
        journal.ran("req_1", ran("é" * 64, rule=f"{number}"))
    (journey,) = journal.get("req_1")
    assert len(journey.runs) == RUNS_MAX
    assert len(pack(journey)) <= JOURNEY_BYTES_MAX
