"""What is told of something that should not have happened: when it was, what went wrong then, what its node said."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.response_request import Answer
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.chat_users import People
from smg_chaos.gameday.whole.excuses import Excuses
from smg_chaos.gameday.whole.fault_record import Happened
from smg_chaos.gameday.whole.page import page
from smg_chaos.gameday.whole.report import markdown
from smg_chaos.gameday.whole.surprises import OF_A_KIND_MAX, Surprises, around, lines_around

FAULTS = [
    Happened("crowd", "crowd, 5.0 s", "world", 130.0, 135.0, 0.0),
    Happened("store-stall", "store-stall, 3.0 s", "world", 110.0, 113.0, 2.0),
    Happened("kill", "kill of n1, 3.0 s", "nodes", 119.0, 125.0, 1.0),
    Happened("pause", "pause of n2, 1.5 s", "nodes", 90.0, 91.5, None),
]


def line(number: int) -> str:
    return json.dumps({"message": f"line {number}", "filled": "x" * (number % 97)})


def test_a_story_says_when_it_was_which_faults_there_were_and_what_each_node_said_that_it_names(
    tmp_path: Path,
) -> None:
    logs = {name: tmp_path / name for name in ("n1", "n2", "n3")}
    for name in ("n1", "n2"):
        logs[name].write_text(f"{name} before\n")
    surprises = Surprises(logs, now_s=lambda: 121.0, now_ms=lambda: 1_700_000_000_123)
    surprises.note("turn", "n1", "n1: 503, n3 may have it", 120.0)
    with logs["n1"].open("a") as log:
        log.write("n1 after\n")
    (story,) = surprises.told(FAULTS, 100.0)
    assert (story.kind, story.node, story.begun_s, story.ended_s) == ("turn", "n1", 20.0, 21.0)
    assert story.at == "2023-11-14T22:13:20.123+00:00"
    assert story.faults == (
        "store-stall, 3.0 s: begun 11.0 s before, over for 8.0 s",
        "kill of n1, 3.0 s: begun 2.0 s before, still on",
    )
    assert story.logged == ("n1: n1 before", "n1: n1 after"), "n3 has no log yet, n2 is not named"


def test_people_note_what_nothing_excuses_and_nothing_else() -> None:
    surprises, excuses = Surprises(now_s=lambda: 8.0), Excuses()
    nodes = Balancer[SmgAgent](cast(Lab, None), "clients", [])
    people = People(*(cast(Lab, None), nodes, excuses, 1), now_s=lambda: 8.0, surprises=surprises)
    excuses.begin("n02", 5.0)
    away = {"error": {"code": "store_unavailable", "message": "it does not answer"}}
    people._refused("n02", Answer(503, away), begun_s=7.0)
    assert surprises.noted == []
    people._refused("n01", Answer(503, away), begun_s=7.0)
    people._dropped("n01: reset", begun_s=6.0)
    gone = {"error": {"code": "previous_response_not_found", "message": "there is none"}}
    people._refused("n02", Answer(400, gone), begun_s=7.5)
    told = [(one.kind, one.node, one.begun_s) for one in surprises.noted]
    assert told == [("turn", "n01", 7.0), ("turn", "n01", 6.0), ("denied", "n02", 7.5)]
    assert "does not answer" in surprises.noted[0].says


def test_of_each_kind_the_first_are_kept() -> None:
    surprises = Surprises()
    for number in range(3 * OF_A_KIND_MAX):
        surprises.note("lost", "n1", str(number), 0.0)
    surprises.note("turn", "n1", "another", 0.0)
    assert [one.says for one in surprises.noted] == [
        *map(str, range(OF_A_KIND_MAX)),
        "another",
    ]


def test_a_fault_is_around_while_it_is_on_and_a_while_after_it_healed() -> None:
    pause = [FAULTS[3]]
    assert around(pause, 80.0, 89.9) == ()
    assert around(pause, 80.0, 90.0) == ("pause of n2, 1.5 s: begun 0.0 s before, still on",)
    assert around(pause, 106.5, 107.0) == (
        "pause of n2, 1.5 s: begun 17.0 s before, over for 15.5 s",
    )
    assert around(pause, 106.6, 107.0) == ()
    kill = [FAULTS[2]]
    assert around(kill, 141.0, 141.0)
    assert not around(kill, 141.1, 141.1), "one that took a second to heal is told of for longer"


@given(st.data())
def test_only_whole_lines_are_told_whatever_was_being_written(
    tmp_path_factory: Any, data: st.DataObject
) -> None:
    lines = [line(number) for number in range(data.draw(st.integers(0, 400)))]
    content = "".join(f"{one}\n" for one in lines).encode()
    log = tmp_path_factory.mktemp("log") / "output.log"
    log.write_bytes(content)
    at = data.draw(st.integers(0, len(content)))
    found = lines_around(log, at)
    before = content[:at].count(b"\n")
    assert found == lines[max(0, before - 8) : before + 4]


def test_the_report_tells_the_stories_also_without_a_fault_or_a_log() -> None:
    surprises = Surprises(now_s=lambda: 121.0)
    surprises.note("turn", "n1", "n1: <503>", 120.0)
    stories = surprises.told([], 100.0)
    told = {
        "nodes": 3,
        "engines": 2,
        "seed": 7,
        "store": "redis",
        "seconds": 60.0,
        "kept": False,
        "figures": [],
        "faults": [],
        "broken": ["turn: n1: <503>"],
        "stories": [asdict(one) for one in stories],
    }
    text = markdown(told)
    assert "### turn at n1, begun at 20.0 s, ended at 21.0 s" in text
    assert "- No fault was on, or just over." in text
    shown = page("A day", [], [], [], ["turn"], stories, begun_s=100.0, length_s=60.0)
    assert "<summary>21.0 s: turn at n1, 1970-01-01T00:00:00.000+00:00</summary>" in shown
    assert "&lt;503&gt;" in shown
