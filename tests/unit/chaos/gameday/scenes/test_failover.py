"""The scenario of failover: what it asks, and what it makes of what was heard."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.scenes.failover import Tally, failover, is_clear
from smg_chaos.gameday.scenes.failover_scene import stop_in
from smg_chaos.gameday.scenes.roles import CASTS, Harm, questions
from smg_chaos.gameday.stage import Stage
from support.mesh.gameday_fakes import FakeAgent, FakeLab, Manners, VirtualClock

TEXT = "A text of some length, which has an end."


def hearing(text: str = TEXT, *, gap_s: float = 0.1) -> Hearing:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return Hearing(
        0.0,
        status=200,
        request="req_1",
        texts={0: text},
        tokens={0: []},
        finishes={0: ["length"]},
        usages=[usage],
        ends=1,
        gap_s=gap_s,
    )


def broken(text: str, *errors: str) -> Hearing:
    return replace(hearing(text), finishes={0: []}, usages=[], ends=0, errors=list(errors))


async def test_a_topology_that_nobody_knows_is_named(tmp_path: Path) -> None:
    lab = FakeLab(("n0",), VirtualClock(), Manners())
    cluster = Cluster(lab, [FakeAgent(lab, "n0", tmp_path)], lab.clock)
    stage = Stage(cluster, 0.0, 1, Random(1), print, topology="triples")
    with pytest.raises(ClusterError, match=r"'triples'; there are alone, pairs"):
        await failover(stage)


def test_every_stream_asks_something_of_its_own_in_four_kinds() -> None:
    asked = questions(8)
    assert len({one["messages"][0]["content"] for one in asked}) == 8
    assert [one.get("n", 1) for one in asked[:4]] == [1, 2, 1, 1]
    assert [one.get("logprobs", False) for one in asked[:4]] == [False, False, True, False]
    assert all(one["stream_options"] == {"include_usage": True} for one in asked)


@pytest.mark.parametrize(
    ("text", "stop"),
    [("abcdefghij", "ghij"), ("\ufffd" * 10 + "abcdefghij", "cdef"), ("\ufffd" * 10, ""), ("", "")],
)
def test_a_stop_string_is_plain_text_from_the_second_half(text: str, stop: str) -> None:
    assert stop_in(text + ("!" if stop == "ghij" else "")) == stop


def test_streams_that_are_right_meet_every_target() -> None:
    tally = Tally()
    assert tally.took(hearing(), hearing(), moved=True, silence_s=0.4) == ""
    assert tally.took(hearing(), hearing(), moved=False, silence_s=9.0) == ""
    wrong, silence = tally.figures(Harm("kill"), 1.0)
    assert (wrong.value, wrong.is_met, wrong.says) == (
        0,
        True,
        "of 2, 1 on the worker that was hurt",
    )
    assert (silence.value, silence.limit, silence.is_met) == (0.4, 1.0, True)


def test_one_wrong_stream_misses_the_target_and_what_it_lost_is_told() -> None:
    tally = Tally()
    said = tally.took(
        broken(TEXT[:30], "upstream_unavailable"), hearing(), moved=True, silence_s=0.1
    )
    wrong, _ = tally.figures(Harm("stall"), 3.0)
    assert (wrong.value, wrong.is_met) == (1, False)
    assert wrong.says == "of 1, 1 on the worker that was hurt; 10 characters lost"
    assert said == (
        "req_1 on the worker that was hurt: ends with upstream_unavailable;"
        " choice 0: 10 of 40 characters are missing at the end"
    )


def test_a_harm_that_met_no_stream_proves_nothing() -> None:
    tally = Tally()
    tally.took(hearing(), hearing(), moved=False, silence_s=0.1)
    assert [figure.is_met for figure in tally.figures(Harm("removal"), 1.0)] == [True, False]


def test_who_loses_the_worker_of_its_prompt_waits_for_its_first_text() -> None:
    tally = Tally()
    tally.took(hearing(), hearing(), moved=True, silence_s=4.0)
    wrong, wait = tally.figures(Harm("kill", "prefill"), 3.0)
    assert wrong.metric == "kill of a prefill engine: streams that are not as undisturbed"
    assert wait.metric == "kill of a prefill engine: first text of a moved stream, p99"
    assert (wait.value, wait.is_met) == (4.0, False)


def test_a_hundred_rounds_are_shared_among_the_harms_and_each_is_done_at_least_once() -> None:
    alone, pairs = CASTS["alone"](64), CASTS["pairs"](64)
    assert list(alone.often(100).values()) == [100, 20, 20]
    assert sum(pairs.often(100).values()) == 140
    assert set(pairs.often(1).values()) == {1}
    assert {harm.role for harm in pairs.shares} == {"prefill", "decode"}


def test_pairs_are_found_inside_each_contract_and_prompts_stand_in_line() -> None:
    parts = CASTS["pairs"](64).parts
    for contract in ("sglang", "vllm"):
        roles = [part.role for part in parts if contract in part.flags]
        assert sorted(roles) == ["decode", "decode", "prefill", "prefill"]
    rooms = [part.flags[part.flags.index("--bootstrap-port") + 1] for part in parts[:2]]
    assert len(set(rooms)) == 2
    speeds = [
        int(part.flags[part.flags.index("--prefill-tokens-per-s") + 1])
        for streams in (16, 64)
        for part in CASTS["pairs"](streams).parts
        if part.role == "prefill"
    ]
    assert speeds == [2000] * 4 + [8000] * 4


def test_before_pairs_a_moved_stream_stands_in_line_once_more() -> None:
    alone, pairs = CASTS["alone"](64), CASTS["pairs"](64)
    assert [alone.silence_s(harm) for harm in alone.shares] == [1.0, 3.0, 1.0]
    assert pairs.silence_s(Harm("kill", "decode")) == 3.5
    assert pairs.silence_s(Harm("stall", "decode")) == 5.5
    assert pairs.silence_s(Harm("stall", "prefill")) == 8.5


def test_a_clear_end_is_one_error_after_what_is_right() -> None:
    assert is_clear(broken(TEXT[:7], "upstream_unavailable"), hearing())
    assert is_clear(broken("", "503 nobody"), hearing())
    assert is_clear(broken(TEXT[:7] + "\ufffd", "upstream_unavailable"), hearing())
    assert not is_clear(broken(TEXT[:7] + "\ufffd" * 2, "upstream_unavailable"), hearing())
    assert not is_clear(broken(TEXT[:7]), hearing())
    assert not is_clear(broken(TEXT[:7], "one", "another"), hearing())
    assert not is_clear(broken("B text", "upstream_unavailable"), hearing())
    assert not is_clear(
        replace(broken(TEXT[:7], "one"), broken="the connection broke: reset"), hearing()
    )
    assert not is_clear(replace(broken(TEXT[:7], "one"), finishes={0: ["stop"]}), hearing())
