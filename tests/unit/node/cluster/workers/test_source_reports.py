"""Source reports: every node hears what every other one says of a source, with ages, and for 15 seconds."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from smg_mesh.crdt.registers.register_codec import REGISTER_BYTES_MAX
from smg_node.cluster.workers.source_reports import (
    REPEAT_MS,
    TEXT_CHARACTERS_MAX,
    TTL_MS,
    SourceReports,
)
from support.state.register_world import RegisterWorld

if TYPE_CHECKING:
    from smg_mesh.shared import Shared


class Cluster:
    """Nodes whose registers all hear one another."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.living = list(names)
        self.reports = {name: SourceReports(self._shared(name)) for name in names}

    def _shared(self, name: str) -> "Shared":
        bound = self.world[name].bound
        one = SimpleNamespace(registers=bound, name=name, living=lambda: self.living)
        return cast("Shared", one)

    def pass_time(self, span_ms: int) -> None:
        """Let time pass, and rumors arrive."""
        self.world.pass_time(span_ms, step_ms=min(span_ms, 500))


def test_what_one_says_all_hear_with_its_age() -> None:
    cluster = Cluster("a", "b")
    cluster.reports["a"].publish(
        "dns",
        "metal",
        {"standing": "ok", "since_ms": 10, "sightings": 3, "age_ms": 0, "writing": True},
    )
    cluster.pass_time(1_000)

    (heard,) = cluster.reports["b"].of("dns", "metal").values()

    assert (heard.standing, heard.sightings, heard.writing) == ("ok", 3, True)
    assert heard.age_ms >= 900
    assert heard.since_ms >= 910
    assert cluster.reports["b"].named() == (("dns", "metal"),)
    assert cluster.reports["a"].of("dns", "metal")["a"].age_ms >= 1_000
    assert cluster.reports["b"].of("dns", "other") == {}


def test_who_does_not_live_says_nothing_and_all_agree_on_an_order() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.reports["a"].publish("dns", "metal", {"standing": "ok"})
    cluster.pass_time(100)
    cluster.living.remove("a")
    assert cluster.reports["b"].of("dns", "metal") == {}
    orders = {
        tuple(reports.ranked("dns", "metal", names))
        for reports in cluster.reports.values()
        for names in (("a", "b", "c"), ("c", "a", "b"))
    }
    assert len(orders) == 1


def test_it_lapses_unless_it_is_said_again_in_time() -> None:
    cluster = Cluster("a", "b")
    cluster.reports["a"].publish("dns", "metal", {"standing": "ok"})
    for _ in range(6):
        cluster.pass_time(REPEAT_MS)
        cluster.reports["a"].publish("dns", "metal", {"standing": "ok"})
    cluster.pass_time(100)
    assert list(cluster.reports["b"].of("dns", "metal")) == ["a"]

    cluster.pass_time(TTL_MS + 1_000)

    assert cluster.reports["b"].of("dns", "metal") == {}


def test_what_is_withdrawn_is_gone_at_once() -> None:
    cluster = Cluster("a", "b")
    cluster.reports["a"].publish("dns", "metal", {})
    cluster.pass_time(100)
    cluster.reports["a"].withdraw("dns", "metal")
    cluster.pass_time(100)
    assert cluster.reports["b"].of("dns", "metal") == {}
    assert cluster.reports["a"].named() == ()


def test_texts_of_any_length_and_kind_fit() -> None:
    cluster = Cluster("a", "b")
    for text in ("x" * 10_000, "\U0001f600" * 500, "\ud800 broken", ""):
        cluster.reports["a"].publish(
            "kubernetes",
            "n" * 32,
            {"trouble": text, "held": text, "unusable": text, "sightings": 2**40},
        )
        cluster.pass_time(100)
        heard = cluster.reports["b"].of("kubernetes", "n" * 32)["a"]
        assert len(heard.trouble) <= TEXT_CHARACTERS_MAX
        assert bool(heard.trouble) == bool(text)


def test_what_makes_no_sense_is_passed_over() -> None:
    cluster = Cluster("a", "b")
    registers = cluster.world["a"].bound
    for content in (b"", b"\xc1", b"\x91\xa3odd", b"\x91" * 400, b"x" * REGISTER_BYTES_MAX):
        registers.set("d", "dns/metal", content, ttl_ms=1_000)
        cluster.pass_time(10)
        assert cluster.reports["b"].of("dns", "metal") == {}


def test_a_source_is_contested_while_the_writer_of_another_one_wants_something() -> None:
    cluster = Cluster("a", "b", "c")
    wants = {"standing": "ok", "writing": True, "refused": 2}
    cluster.reports["a"].publish("kubernetes", "blue", wants)
    cluster.pass_time(200)
    assert not cluster.reports["b"].contested("kubernetes", "blue")
    assert cluster.reports["b"].contested("kubernetes", "green")
    assert not cluster.reports["b"].contested("dns", "green")
    cluster.reports["a"].publish("kubernetes", "blue", {**wants, "writing": False})
    cluster.pass_time(200)
    assert not cluster.reports["b"].contested("kubernetes", "green")
    cluster.reports["a"].publish("kubernetes", "blue", {**wants, "refused": 0})
    cluster.pass_time(200)
    assert not cluster.reports["b"].contested("kubernetes", "green")
