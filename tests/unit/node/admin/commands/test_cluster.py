import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from smg_node.system_clock import SystemClock
from support.http.admin_api import Asked, RunAdmin, Script, admin_api

_NOW_MS = SystemClock().now_ms()
"""When the tests were read, which may be an hour before they run."""
_ME: dict[str, Any] = {
    "name": "node-a",
    "state": "alive",
    "address": "10.0.0.1:7946",
    "boot": 7,
    "incarnation": 0,
    "rtt_ms": None,
    "health": 0,
    "lag_ms": None,
    "since_ms": _NOW_MS - 216_000_000,
    "meta": {"http": "10.0.0.1:30000", "version": "1.2.3"},
    "me": True,
    "announced": True,
    "accuser": "",
}
_OTHER = {**_ME, "name": "b", "address": "10.0.0.2:7946", "me": False, "rtt_ms": 0.41}
_OTHER |= {"lag_ms": 300, "meta": {"version": "1.2.3", "draining": True}}
_DOUBTED = {**_OTHER, "name": "c", "state": "suspect", "accuser": "b", "lag_ms": 4_000}
_DOUBTED |= {"meta": {"version": "1.2.3"}}
_HELD = {**_DOUBTED, "name": "d", "state": "alive", "announced": False}
_CARD: dict[str, Any] = {
    "label": "blue",
    "node": "node-a",
    "address": "10.0.0.1:7946",
    "security": "encrypted",
    "joined": True,
    "isolated": False,
    "drained": False,
    "leaving": False,
    "members": {"alive": 2, "suspect": 1, "dead": 0, "left": 0},
    "degraded": [],
    "seeds": [{"peer": "b:7946"}, {"peer": "nowhere:1", "error": "no such host"}],
    "keys": ["aabbccdd", "00112233"],
}
_EVENT = {"id": 4, "time_ms": 1_700_000_000_123, "kind": "member_down", "name": "c"}
_EVENT |= {"detail": {"why": "silent"}}


def _node(*rows: dict[str, Any], **card: Any) -> Script:
    """A node of this cluster; `card` changes what it says of it."""

    def script(asked: Asked) -> tuple[int, Any]:
        path, _, query = asked.path.partition("?")
        answers: dict[str, Any] = {
            "/v1/cluster": {**_CARD, **card},
            "/v1/cluster/members": {"node": "node-a", "members": rows},
            "/v1/cluster/events": {"node": "node-a", "boot": 7, "events": [_EVENT]},
            "/v1/cluster/join": {"status": "accepted", "peers": ["x"]},
            "/v1/cluster/leave": {"status": "leaving", "node": "node-a"},
            "/v1/cluster/members/b/drain": {**_OTHER},
            "/v1/cluster/members/b/undrain": {**_OTHER},
            "/v1/cluster/members/c/forget": {"name": "c", "members": {"b": "ok", "node-a": "ok"}},
            "/v1/cluster/members/d/forget": {"name": "d", "members": {"b": "silent"}},
        }
        if path not in answers:
            return 404, {"error": {"message": "nobody has that name"}}
        assert query in ("", "state=dead", "after=3", "after=0"), query
        return 200, answers[path]

    return script


def test_status_is_a_head_and_the_members_by_name(run: RunAdmin) -> None:
    with admin_api(_node(_DOUBTED, _ME, _OTHER, _HELD)) as api:
        code, out, err = run("--url", api.url, "cluster", "status")
    assert (code, err) == (0, "")
    head, _, table = out.partition("\n\n")
    assert "cluster  blue, encrypted\n" in head
    assert "state    joined\n" in head
    assert "members  2 alive, 1 suspect\n" in head
    assert "nowhere:1 (no such host)" in head
    assert "aabbccdd (encrypts), 00112233" in head
    lines = [line.split() for line in table.splitlines()]
    assert lines[0][:4] == ["NAME", "STATE", "FOR", "ADDRESS"]
    assert [line[0] for line in lines[1:]] == ["b", "c", "d", "node-a"]
    assert lines[1][:3] == ["b", "alive", "2d"]
    assert lines[1][4] == "10.0.0.2:7946"
    assert "draining" in lines[1]
    assert table.splitlines()[2].endswith("doubted by b")
    assert table.splitlines()[3].endswith("watched before it counts")
    assert table.splitlines()[4].endswith("this node")
    assert "10.0.0.1:30000" in table
    assert "VERSION" not in table


def test_versions_are_shown_where_they_differ(run: RunAdmin) -> None:
    newer = {**_OTHER, "meta": {"version": "2.0.0"}}
    with admin_api(_node(_ME, newer)) as api:
        _, out, _ = run("--url", api.url, "cluster", "members")
    assert "VERSION" in out
    assert "2.0.0" in out


def test_status_in_json_has_both_parts(run: RunAdmin) -> None:
    with admin_api(_node(_ME)) as api:
        _, out, _ = run("--url", api.url, "cluster", "status", "--json")
    assert json.loads(out) == {"cluster": _CARD, "members": [_ME]}


@pytest.mark.parametrize(
    ("card", "code", "words"),
    [
        ({"joined": False, "seeds": []}, 0, "has not met anybody yet"),
        ({"joined": False}, 1, "has not met anybody yet"),
        ({"isolated": True, "degraded": ["6 of 10 probes failed"]}, 1, "6 of 10 probes failed"),
        ({"drained": True}, 0, "joined, drained"),
        ({"leaving": True}, 0, "leaving"),
        ({"security": "insecure", "keys": []}, 0, "INSECURE: plain text, no keyring"),
        ({"security": "alone", "joined": False, "seeds": []}, 0, "--mesh-key FILE"),
    ],
)
def test_status_says_how_the_node_stands(
    run: RunAdmin, card: dict[str, Any], code: int, words: str
) -> None:
    with admin_api(_node(_ME, **card)) as api:
        found, out, _ = run("--url", api.url, "cluster", "status")
    assert found == code
    assert words in out


def test_members_in_json_are_a_plain_list(run: RunAdmin) -> None:
    with admin_api(_node(_OTHER, _ME)) as api:
        code, out, _ = run("--url", api.url, "cluster", "members", "--json")
    assert code == 0
    assert json.loads(out) == [_OTHER, _ME]


def test_members_can_be_chosen_by_state(run: RunAdmin) -> None:
    with admin_api(_node()) as api:
        code, out, _ = run("--url", api.url, "cluster", "members", "--state", "dead")
    assert (code, out) == (0, "There are no members.\n")
    assert api.asked[0].path == "/v1/cluster/members?state=dead"


@pytest.fixture
def seen_enough(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let Ctrl-C come at the n-th pause of a command."""

    def after(pauses: int) -> None:
        left = [pauses]

        def sleep(_: float) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr("smg_node.admin.views.watch_loop.time.sleep", sleep)

    return after


@pytest.mark.parametrize("command", ["members", "status"])
def test_watching_shows_it_again_until_somebody_has_seen_enough(
    run: RunAdmin, seen_enough: Callable[[int], None], command: str
) -> None:
    seen_enough(3)
    with admin_api(_node(_ME)) as api:
        code, out, _ = run("--url", api.url, "cluster", command, "--watch")
    assert code == 0
    assert out.count("10.0.0.1:7946") == (3 if command == "members" else 6)


def test_watching_in_json_is_one_line_each(
    run: RunAdmin, seen_enough: Callable[[int], None]
) -> None:
    seen_enough(2)
    with admin_api(_node(_ME)) as api:
        _, out, _ = run("--url", api.url, "cluster", "members", "--watch", "--json")
    assert [json.loads(line) for line in out.splitlines()] == [[_ME], [_ME]]


def test_a_terminal_shows_one_picture_that_changes(
    run: RunAdmin, seen_enough: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_enough(3)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)  # whoever runs the tests may want none
    with admin_api(_node(_ME, _DOUBTED)) as api:
        code, out, _ = run("--url", api.url, "cluster", "members", "--watch")
    assert code == 0
    assert out.count("10.0.0.1:7946") >= 3
    assert "10.0.0.1:30000" not in out, "a narrow terminal has no room for it"
    assert "\x1b[33msuspect" in out, "a doubt is yellow"
    assert "\x1b[1A" in out, "the next picture is drawn over the last"


def test_watching_survives_a_node_that_is_away(
    run: RunAdmin, seen_enough: Callable[[int], None]
) -> None:
    seen_enough(2)
    code, out, _ = run("--url", "http://127.0.0.1:1", "cluster", "members", "--watch")
    assert code == 0
    assert out.count("no node answers at http://127.0.0.1:1") == 2


def test_events_are_listed_with_local_times(run: RunAdmin) -> None:
    with admin_api(_node()) as api:
        code, out, _ = run("--url", api.url, "cluster", "events", "--after", "3")
        _, as_json, _ = run("--url", api.url, "cluster", "events", "--json")
    assert code == 0
    row = out.splitlines()[1]
    assert re.match(r" *4 +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.123.*member_down +c +why=silent", row)
    assert json.loads(as_json) == [_EVENT]


def _stream(*, ends: list[int]) -> Script:
    """A stream of one event, each time one later than what was seen."""

    def script(asked: Asked) -> tuple[int, Any]:
        after = re.search(r"after=(\d+)", asked.path)
        assert after is not None
        event = {**_EVENT, "id": int(after[1]) + 1}
        ends.append(int(after[1]))
        text = f": watching\n\nid: {event['id']}\nevent: x\ndata: {json.dumps(event)}\n\n: ping\n\n"
        return 200, text.encode()

    return script


def test_following_goes_on_where_a_stream_ended(
    run: RunAdmin, seen_enough: Callable[[int], None]
) -> None:
    seen_enough(2)
    seen: list[int] = []
    with admin_api(_stream(ends=seen)) as api:
        code, out, err = run("--url", api.url, "cluster", "events", "--follow", "--json")
    assert code == 0
    assert seen == [0, 1]
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert err.count("ended the stream; trying again") == 2


def test_following_a_node_that_refuses_says_why(
    run: RunAdmin, seen_enough: Callable[[int], None]
) -> None:
    seen_enough(1)
    with admin_api(lambda _: (503, {"error": {"message": "64 clients watch already"}})) as api:
        _, out, err = run("--url", api.url, "cluster", "events", "-f")
    assert out == ""
    assert "64 clients watch already; trying again" in err


def test_joining_sends_the_peers(run: RunAdmin) -> None:
    with admin_api(_node()) as api:
        code, out, _ = run("--url", api.url, "cluster", "join", "b:7946", "c")
    assert code == 0
    assert api.asked[0].body == {"peers": ["b:7946", "c"]}
    assert out.startswith("looking for b:7946, c; ")


def test_leaving_is_asked_of_the_node_itself(run: RunAdmin) -> None:
    with admin_api(_node()) as api:
        code, out, _ = run("--url", api.url, "cluster", "leave")
    assert (code, api.asked[0].method) == (0, "POST")
    assert out == "node-a takes its leave: it drains, says goodbye and stops\n"


@pytest.mark.parametrize(
    ("verb", "said"), [("drain", "takes no new work"), ("undrain", "takes work again")]
)
def test_a_member_is_moved_by_name(run: RunAdmin, verb: str, said: str) -> None:
    with admin_api(_node()) as api:
        code, out, _ = run("--url", api.url, "cluster", verb, "b")
        _, as_json, _ = run("--url", api.url, "cluster", verb, "b", "--json")
        missing = run("--url", api.url, "cluster", verb, "x/y")
    assert (code, out) == (0, f"b {said}\n")
    assert json.loads(as_json) == _OTHER
    assert missing == (1, "", "smg-admin: nobody has that name\n")
    assert api.asked[-1].path == f"/v1/cluster/members/x%2Fy/{verb}"


def test_forgetting_says_who_did_not(run: RunAdmin) -> None:
    with admin_api(_node()) as api:
        done = run("--url", api.url, "cluster", "forget", "c")
        half = run("--url", api.url, "cluster", "forget", "d")
    assert done == (0, "c is forgotten by 2 members\n", "")
    assert half == (1, "", "b did not forget it: silent\n")
