"""`smg-admin cluster drain --wait`: what an operator sees, and what ends the waiting."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from smg_node.admin.commands import drain_wait as draining
from smg_node.admin.commands.drain_wait import outcome_of, step
from support.http.admin_api import Asked, RunAdmin, Script, admin_api

LOST = -1
"""In place of a view: the look fails."""


def view(stage: str = "draining", streams: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "name": "b",
        "boot": 7,
        "stage": stage,
        "open": streams,
        "requests": 0,
        "streams": streams,
        "background": 0,
        "settle_left_s": 0.0,
        "cut_left_s": None,
        "patience_s": 185.0,
        "duties": {"limits": 0, "workers": 0, "spooled": False},
        "probers": [],
        "silent_processes": [],
        **more,
    }


def member(*views: dict[str, Any] | int, begin: tuple[int, Any] = (200, {})) -> Script:
    """A node that says these one after the other, and the last for ever."""
    left = list(views)

    def script(asked: Asked) -> tuple[int, Any]:
        assert asked.path == "/v1/cluster/members/b/drain"
        if asked.method == "POST":
            return begin
        now = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(now, int):
            return 504, {"error": {"message": "b: no answer"}}
        return 200, now

    return script


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time go by only where somebody sleeps."""
    now_s = [100.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    of_its_own = SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep)
    monkeypatch.setattr(draining, "time", of_its_own)


Drained = Callable[..., tuple[int, str, str]]


@pytest.fixture
def drained(run: RunAdmin) -> Drained:
    def of(script: Script, *words: str) -> tuple[int, str, str]:
        with admin_api(script) as api:
            return run("--url", api.url, "cluster", "drain", "b", *words)

    return of


def test_it_waits_until_nothing_is_open_and_says_what_goes_over(drained: Drained) -> None:
    duties = {"limits": 2, "workers": 1, "spooled": False}
    code, out, err = drained(
        member(
            view("settling", 3, settle_left_s=4.2),
            view("draining", 3),
            view("draining", 1),
            view("drained", duties=duties),
        ),
        "--wait",
    )
    assert code == 0
    assert out == (
        "b is empty after 1s: nothing is open there; what it looks after (2 limits, 1 worker) goes over to others"
        " when it stops\n"
    )
    assert err.splitlines() == [
        "b is settling: 3 streams, 0 requests open, still takes work for 5s, for balancers; 3m 05s left",
        "b is draining: 3 streams, 0 requests open; 3m 04s left",
    ]


def test_when_time_is_up_it_says_what_is_open_and_what_may_be_done(drained: Drained) -> None:
    code, out, err = drained(member(view("draining", 1, silent_processes=["1-77"])), "--wait-s=2")
    assert (code, out) == (1, "")
    assert "time is up after 2s: 1 stream, 0 requests open (process 1-77 does not say) at b" in err
    assert "smg-admin cluster undrain b" in err


def test_without_a_time_it_waits_as_long_as_the_member_itself_would(drained: Drained) -> None:
    code, _, err = drained(member(view("draining", 1, patience_s=90.0)), "--wait")
    assert code == 1
    assert "time is up after 1m 30s" in err


@pytest.mark.parametrize(
    ("last", "code", "words"),
    [
        (view("left"), 0, "b has left the cluster"),
        (view("dead"), 1, "b died while it was drained: what was open there was cut off"),
        (view("serving", 2), 1, "somebody undrained it"),
        (view("serving", boot=8), 1, "b was started anew"),
    ],
)
def test_what_becomes_of_a_member_meanwhile_ends_the_waiting(
    drained: Drained, last: dict[str, Any], code: int, words: str
) -> None:
    found, out, err = drained(member(view("draining", 2), last), "--wait")
    assert found == code
    assert words in (out if code == 0 else err)


def test_a_look_that_fails_is_tried_again_and_a_long_silence_is_told(drained: Drained) -> None:
    code, out, err = drained(member(view("draining", 2), LOST, LOST, view("drained")), "--wait")
    assert (code, out) == (0, "b is empty after 1s: nothing is open there\n")
    assert "b: no word of it (b: no answer); 2 streams, 0 requests open before" in err
    code, _, err = drained(member(view("draining", 2), LOST), "--wait")
    assert code == 1
    assert "what became of b is not known: b: no answer" in err


def test_a_member_that_does_not_even_begin_is_an_error_at_once(drained: Drained) -> None:
    dead = (409, {"error": {"message": "b is dead", "code": "member_gone"}})
    assert drained(member(LOST, begin=dead), "--wait") == (1, "", "smg-admin: b is dead\n")
    assert drained(member(LOST), "--wait") == (1, "", "smg-admin: b: no answer\n")


def test_one_that_is_leaving_already_is_waited_for_and_not_otherwise(drained: Drained) -> None:
    leaving = (409, {"error": {"message": "this node is leaving", "code": "member_leaving"}})
    views = (view("leaving", 1, cut_left_s=20.0), view("left"))
    code, out, err = drained(member(*views, begin=leaving), "--wait")
    assert (code, out) == (0, "b has left the cluster after 0s\n")
    assert "what is left is cut in 20s" in err
    assert drained(member(*views, begin=leaving))[0] == 1


def test_in_json_there_is_one_document_and_no_progress(drained: Drained) -> None:
    code, out, err = drained(member(view("draining", 2), view("drained")), "--wait", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["outcome"], told["waited_s"], told["last"]["stage"]) == ("drained", 0.5, "drained")
    code, out, _ = drained(member(view("draining", 2)), "--wait-s", "1", "--json")
    assert (code, json.loads(out)["outcome"]) == (1, "time is up")


def test_balancers_that_were_told_that_it_is_ready_are_named_and_cannot_steer_a_terminal() -> None:
    probers = [
        {"address": "10.0.0.9", "agent": "kube\x1b[2J", "ago_s": 0.5, "told_ready": True},
        {"address": "10.0.0.8", "agent": "", "ago_s": 0.5, "told_ready": False},
    ]
    line = step("b", view("settling", 1, probers=probers), "", 9)
    assert "not asked since by 10.0.0.9 kube" in line
    assert "10.0.0.8" not in line
    assert "\x1b" not in draining._printable(line)


def test_a_terminal_shows_one_line_that_changes(
    drained: Drained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    _, out, err = drained(
        member(view("draining", 2), view("draining", 1), view("drained")), "--wait"
    )
    assert err.count("\r\x1b[K") == 2
    assert err.endswith("\n")
    assert out.startswith("b is empty")


@pytest.mark.parametrize("stage", ["settling", "draining", "leaving"])
def test_there_is_no_outcome_while_something_is_open_and_time_is_left(stage: str) -> None:
    now = view(stage, 1)
    assert outcome_of(now, now, trouble="", blind=False, late=False) is None
    assert outcome_of(now, now, trouble="", blind=False, late=True) == "time is up"
    assert outcome_of(now, now, trouble="gone", blind=False, late=False) is None
    assert outcome_of(now, now, trouble="gone", blind=True, late=False) == "silent"
