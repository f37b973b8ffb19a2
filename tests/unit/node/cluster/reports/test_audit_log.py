from typing import Any

import pytest

from smg_mesh.shared import StateError
from smg_mesh.state.audit_log import Audit
from smg_node.cluster.reports.audit_log import AuditLog, without_secrets
from smg_node.core.errors import SmgError
from smg_node.http.ports.shared_state import AuditQuery, Caller
from smg_node.http.routes.cluster.settings_history import change_of
from support.state.fake_namespace import FakeNamespaces
from support.state.fake_shared_state import SharedWorld

ME = Caller("loopback", "127.0.0.1", "req-1")


def test_a_row_says_who_what_from_where_and_both_sides() -> None:
    world = SharedWorld("a", "b")
    one, other = world.desks("a").audit, world.desks("b").audit
    one.record(ME, "worker.change", "w-1", before={"priority": 50}, after={"priority": 80})
    other.record(ME, "setting.set", "limits.n_max", after={"value": 4})
    rows = one.rows(AuditQuery())
    assert [(row.node, row.action, row.subject) for row in rows] == [
        ("b", "setting.set", "limits.n_max"),
        ("a", "worker.change", "w-1"),
    ]
    assert (rows[1].who, rows[1].address, rows[1].request_id) == ("loopback", "127.0.0.1", "req-1")
    assert (rows[1].before, rows[1].after) == ({"priority": 50}, {"priority": 80})
    assert other.row(rows[1].id) == rows[1]


def test_the_replicated_log_answers_every_question_on_every_node() -> None:
    world = FakeNamespaces("a", "b", name="audit")
    one, other = (AuditLog(Audit(world[name], name)) for name in "ab")
    one.record(ME, "worker.add", "w-1", after={"api_key": "sk-1", "priority": 50})
    world.advance(5)
    other.record(
        Caller("ops", "10.0.0.9", "req-2"), "setting.set", "k", after={"value": "x" * 9000}
    )
    newest, oldest = one.rows(AuditQuery())
    assert (newest.node, newest.who, newest.address) == ("b", "ops", "10.0.0.9")
    assert oldest.after == {"api_key": "(set)", "priority": 50}
    assert not change_of(newest).whole
    assert other.rows(AuditQuery(action="worker")) == [oldest]
    assert other.rows(AuditQuery(subject="k", who="ops", node="b")) == [newest]
    assert other.rows(AuditQuery(after=oldest.id)) == [newest]
    assert other.rows(AuditQuery(before=newest.id, limit=1)) == [oldest]
    assert one.row(newest.id) == newest
    with pytest.raises(SmgError, match="is remembered"):
        one.row("nothing")


def test_a_row_nobody_remembers_is_not_found() -> None:
    with pytest.raises(SmgError) as caught:
        SharedWorld("a").desks("a").audit.row("x" * 500)
    assert (caught.value.status, caught.value.code) == (404, "change_not_found")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"api_key": "sk-1"}, {"api_key": "(set)"}),
        ({"api_key": ""}, {"api_key": ""}),
        ({"workers": [{"key": "k", "url": "u"}]}, {"workers": [{"key": "(set)", "url": "u"}]}),
        ({"a": {"secret": {"deep": 1}}}, {"a": {"secret": "(set)"}}),
        (None, None),
        ([1, "a"], [1, "a"]),
    ],
)
def test_nothing_secret_is_written_down(value: Any, kept: Any) -> None:
    assert without_secrets(value) == kept
    world = SharedWorld("a")
    world.desks("a").audit.record(ME, "worker.add", "w", before=value, after=value)
    assert (world.rows[0].before, world.rows[0].after) == (kept, kept)


def test_endless_nesting_is_cut() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    cut = without_secrets(value)
    for _ in range(17):
        cut = cut[0]
    assert cut is None


def test_a_row_that_cannot_be_kept_fails_nothing_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = SharedWorld("a")
    audit = world.desks("a").audit
    for refusal in (StateError("closed", "not open yet"), ValueError("no JSON")):
        world.nodes["a"].audit.refuses = refusal
        audit.record(ME, "worker.add", "w\n\x1b[2J" + "x" * 1000, after={})
        assert str(refusal) in caplog.text
    assert world.rows == []
    assert "\x1b" not in caplog.text
