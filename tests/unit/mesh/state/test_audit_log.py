"""The audit log: every change, on every node, bounded, also when there is no room."""

from hashlib import blake2b

import msgspec
import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.audit_log import Audit, AuditRow
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces


class Logs:
    """The log as each of three nodes sees it."""

    def __init__(self, *, rows_max: int = 512, bytes_max: int = 2_097_152) -> None:
        self.world = FakeNamespaces("a", "b", "c", name="audit")
        self._limits = {"rows_max": rows_max, "bytes_max": bytes_max}
        self._logs = {name: self.late(name) for name in "abc"}

    def late(self, name: str) -> Audit:
        return Audit(self.world[name], name, **self._limits)

    def __getitem__(self, name: str) -> Audit:
        return self._logs[name]

    def add(self, name: str, subject: str, action: str = "worker.add", **more: object) -> AuditRow:
        self.world.advance(1)
        before = more.get("before")
        return self[name].append(who="ops", action=action, subject=subject, before=before)

    def subjects(self, name: str, **asked: str) -> list[str]:
        return [row.subject for row in self[name].rows(**asked)]  # type: ignore[arg-type]  # no limit


@pytest.fixture
def logs() -> Logs:
    return Logs()


def test_a_row_is_known_on_all_nodes_with_all_it_says(logs: Logs) -> None:
    row = logs["a"].append(
        who="ops@acme",
        address="10.0.0.9:4711",
        action="setting.set",
        subject="log.level",
        before="info",
        after={"level": "debug"},
        request_id="req-1",
    )
    assert row == AuditRow(
        id=row.id,
        time_ms=EPOCH_MS,
        node="a",
        who="ops@acme",
        address="10.0.0.9:4711",
        action="setting.set",
        subject="log.level",
        before="info",
        after={"level": "debug"},
        request_id="req-1",
    )
    for name in "abc":
        assert logs[name].rows() == [row]
        assert logs[name].row(row.id) == row
    assert logs["a"].row("nothing") is None


def test_equal_rows_are_rows_of_their_own(logs: Logs) -> None:
    ids = {logs["a"].append(who="x", action="y").id for _ in range(50)}
    assert len(ids) == len(logs["b"]) == 50


def test_rows_come_newest_first_whoever_wrote_them(logs: Logs) -> None:
    for number in range(9):
        logs.add("abc"[number % 3], str(number))
    for name in "abc":
        assert logs.subjects(name) == [str(number) for number in reversed(range(9))]
        ids = [row.id for row in logs[name].rows()]
        assert ids == sorted(ids, reverse=True)


def test_rows_are_read_page_by_page(logs: Logs) -> None:
    rows = [logs.add("a", str(number)) for number in range(7)]
    seen: list[str] = []
    before = ""
    while page := logs["b"].rows(before=before, limit=3):
        seen += [row.subject for row in page]
        before = page[-1].id
    assert seen == ["6", "5", "4", "3", "2", "1", "0"]
    assert logs.subjects("b", after=rows[4].id) == ["6", "5"]
    assert logs.subjects("b", after=rows[1].id, before=rows[4].id) == ["3", "2"]
    assert logs.subjects("b", after=rows[6].id) == []


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (5000, 12)])
def test_a_limit_is_kept(logs: Logs, limit: int, count: int) -> None:
    for number in range(12):
        logs.add("a", str(number))
    assert len(logs["a"].rows(limit=limit)) == count


def test_rows_are_found_by_what_they_say(logs: Logs) -> None:
    logs.add("a", "w-1", "worker.add")
    logs.add("b", "w-1", "worker.remove")
    logs.add("b", "w-2", "worker.remove")
    logs.add("c", "w-2", "workers.else")
    assert logs.subjects("c", action="worker") == ["w-2", "w-1", "w-1"]
    assert logs.subjects("c", action="worker.remove") == ["w-2", "w-1"]
    assert logs.subjects("c", action="worker.rem") == []
    assert logs.subjects("c", subject="w-1") == ["w-1", "w-1"]
    assert logs.subjects("c", node="b", subject="w-1") == ["w-1"]
    assert logs.subjects("c", who="nobody") == []


def test_large_values_are_cut_to_their_digest_and_long_texts_to_their_start(logs: Logs) -> None:
    large = "x" * 5000
    row = logs["a"].append(
        who="w" * 999, action="a", subject="\ud800ü", before=large, after="y" * 4000
    )
    packed = msgspec.msgpack.encode(large)
    digest = blake2b(packed, digest_size=16).hexdigest()
    assert row.before == {"cut": {"bytes": len(packed), "blake2b": digest}}
    assert row.after == "y" * 4000
    assert row.who == "w" * 256
    assert row.subject == "?ü"
    assert logs["b"].rows() == [row]


def test_the_largest_row_there_can_be_fits(logs: Logs) -> None:
    text, value = "🙂" * 300, "y" * 4090
    row = logs["a"].append(
        who=text,
        address=text,
        action=text,
        subject=text,
        request_id=text,
        before=value,
        after=value,
    )
    assert logs["c"].rows() == [row]


def test_values_that_json_cannot_say_are_refused(logs: Logs) -> None:
    with pytest.raises(ValueError, match="bytes"):
        logs["a"].append(who="x", action="y", before=b"raw")
    assert len(logs["a"]) == 0


def test_a_node_keeps_its_latest_rows() -> None:
    logs = Logs(rows_max=5)
    for number in range(9):
        logs.add("a", str(number))
    logs.add("b", "other")
    for name in "abc":
        assert logs.subjects(name) == ["other", "8", "7", "6", "5", "4"]
    assert len(logs.world["c"]) == 6


def test_all_rows_together_stay_under_a_size_and_the_oldest_go() -> None:
    logs = Logs(bytes_max=20_000)
    for number in range(60):
        logs.add("abc"[number % 3], str(number), before="x" * 1000)
        for name in "abc":
            logs[name].tidy()
    kept = logs.subjects("b")
    assert kept == [str(number) for number in range(59, 59 - len(kept), -1)]
    assert 14 <= len(kept) <= 18
    assert sum(len(held.value or b"") for held in logs.world["a"].items()) <= 20_000


def test_one_call_takes_away_a_bounded_number_of_rows() -> None:
    logs = Logs()
    for number in range(30):
        logs.add("a", str(number))
    tight = Audit(logs.world["a"], "a", rows_max=2)
    assert [tight.tidy(writes_max=20) for _ in range(3)] == [20, 8, 0]


def test_a_node_takes_away_nobody_elses_rows() -> None:
    logs = Logs(bytes_max=20_000)
    logs.world.cut(("a", "b"))
    for number in range(30):
        logs.add("a", str(number), before="x" * 1000)
    logs.world.heal()
    before = len(logs["b"])
    logs["b"].tidy()
    assert len(logs["b"]) == before


def test_a_dead_nodes_rows_go_by_the_living_each_by_one_of_them() -> None:
    logs = Logs(bytes_max=20_000)
    for number in range(10):
        logs.add("a", f"a{number}", before="x" * 1000)
    logs.world.cut(("b", "c"))
    for number in range(12):
        logs.add("b", f"b{number}", before="x" * 1000)
    assert len(logs["b"]) == 22
    assert logs["b"].tidy() == logs["c"].tidy() == 0
    logs.world.hold()
    done = [logs[name].tidy(living=["b", "c"]) for name in "bc"]
    assert all(done)
    logs.world.sync("b", "c")
    assert logs.subjects("b") == logs.subjects("c")
    assert len(logs["b"]) == 22 - sum(done)
    assert 14 <= len(logs["b"]) <= 18
    assert logs.subjects("b")[:12] == [f"b{number}" for number in reversed(range(12))]


def documents_full(*numbers: int) -> "type[Full]":
    class These(Full):
        full = numbers

    return These


class Full:
    """Says that documents of these numbers, of sixteen, are full."""

    full: tuple[int, ...] = tuple(range(16))

    def __call__(self, key: str) -> bool:
        return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) % 16 in self.full


def test_a_row_finds_the_document_that_has_room(logs: Logs) -> None:
    logs.world["a"].full = documents_full(*range(13))()
    for number in range(40):
        logs.add("a", str(number))
    assert len(logs["b"]) == 40


def test_with_all_documents_full_own_rows_make_room(logs: Logs) -> None:
    for number in range(10):
        logs.add("a", f"a{number}")
        logs.add("b", f"b{number}")
    logs.world["a"].full = Full()
    for number in range(10, 15):
        row = logs.add("a", f"a{number}")
        assert logs["b"].row(row.id) == row
    own = [subject for subject in logs.subjects("c") if subject.startswith("a")]
    assert own == [f"a{number}" for number in range(14, 4, -1)]
    assert len(logs["c"]) == 20


def test_with_all_documents_full_the_oldest_rows_of_anybody_make_room(logs: Logs) -> None:
    for number in range(10):
        logs.add("b", f"b{number}")
    logs.world["a"].full = lambda key: logs.world["a"].get(key) is None
    for number in range(3):
        logs.add("a", f"a{number}")
    assert logs.subjects("c")[:3] == ["a2", "a1", "a0"]
    assert len(logs["c"]) == 10


def test_where_nothing_makes_room_the_refusal_is_clear(logs: Logs) -> None:
    logs.world["a"].full = lambda _: True
    with pytest.raises(StateError) as refused:
        logs["a"].append(who="x", action="y")
    assert refused.value.reason == "full"
    logs.world["a"].closed = True
    with pytest.raises(StateError) as refused:
        logs["a"].append(who="x", action="y")
    assert refused.value.reason == "closed"


def test_a_log_opened_late_reads_the_same(logs: Logs) -> None:
    for number in range(9):
        logs.add("abc"[number % 3], str(number))
    assert logs.late("b").rows() == logs["b"].rows()


def test_a_restarted_node_writes_on_and_keeps_its_bound() -> None:
    logs = Logs(rows_max=5)
    for number in range(5):
        logs.add("a", str(number))
    logs.world.restart("a", keeps_disk=False)
    logs.world.sync("a", "b", "c")
    late = logs.late("a")
    logs.world.advance(1)
    late.append(who="x", action="y", subject="new")
    assert logs.subjects("b") == ["new", "4", "3", "2", "1"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x90",
        msgspec.msgpack.encode({}),
        msgspec.msgpack.encode({"node": "a", "action": 5}),
        msgspec.msgpack.encode({"node": "a", "action": "x", "before": b"\xc1"}),
        msgspec.msgpack.encode({"node": "a", "action": "x", "before": "text"}),
    ],
)
def test_rows_that_cannot_be_read_are_kept_and_listed(logs: Logs, data: bytes) -> None:
    row = logs.add("a", "1")
    logs.world["b"].put("b/odd", data)
    assert logs["c"].rows() == [row]
    assert [(one.key, one.reason) for one in logs["c"].unreadable()] == [("b/odd", "value")]
    assert logs.world["c"].get("b/odd") is not None


def test_what_a_newer_version_added_to_a_row_is_reported(logs: Logs) -> None:
    value = msgspec.msgpack.encode({"node": "b", "action": "x.y", "mood": "good"})
    logs.world["b"].put("b/1", value)
    assert [row.action for row in logs["c"].rows()] == ["x.y"]
    [report] = logs["c"].unreadable()
    assert (report.reason, report.detail) == ("fields", "mood")
    logs.world["b"].retire("b/1")
    assert logs["c"].unreadable() == []
    assert len(logs["c"]) == 0
