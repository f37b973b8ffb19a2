"""Discovery as any node tells of it: who writes, who stands by, what is registered, and what is wrong."""

from smg_node.cluster.workers.discovery_views import ClusterDiscovery
from smg_node.http.ports.discovery import SourceView
from support.shared_sources import SharedSources


def views(sources: SharedSources, node: str) -> dict[str, SourceView]:
    return {f"{one.kind}/{one.name}": one for one in view_of(sources, node)}


def view_of(sources: SharedSources, node: str) -> list[SourceView]:
    view = ClusterDiscovery(sources.shared[node]).view()
    assert view.node == node
    return list(view.sources)


def test_any_node_tells_the_same() -> None:
    sources = SharedSources("a", "b", "c")
    worker = sources.find("a", "x")
    sources.find("a", "y")
    sources.nodes["b"].remove(worker)
    fine = {"standing": "ok", "age_ms": 500, "sightings": 2}
    sources.reports["a"].publish(
        "kubernetes", "chat", {**fine, "writing": True, "held": "x: removed"}
    )
    sources.reports["b"].publish("kubernetes", "chat", fine)
    sources.reports["c"].publish("file", "file", {"standing": "ok"})
    sources.pass_time(200)

    for node in "abc":
        found = views(sources, node)
        chat = found["kubernetes/chat"]
        assert (chat.writer, chat.standby, chat.trouble) == ("a", "b", "")
        assert (chat.registered, chat.removed) == (1, 1)
        first, second = chat.members
        assert (first.node, first.writing, first.held) == ("a", True, "x: removed")
        assert second.age_ms is not None
        assert second.age_ms >= 500
        assert [one.node for one in found["file/file"].members] == ["c"]
        assert found["file/file"].members[0].age_ms is None


def test_what_is_wrong_is_said() -> None:
    sources = SharedSources("a", "b")
    sources.find("a", "x")
    assert "no living node is configured" in views(sources, "b")["kubernetes/chat"].trouble

    failing = {"standing": "failing", "since_ms": 20_000, "trouble": "403: pods: list"}
    sources.reports["a"].publish("kubernetes", "chat", failing)
    sources.pass_time(200)
    chat = views(sources, "b")["kubernetes/chat"]
    assert "answers no node" in chat.trouble
    assert chat.members[0].trouble == "403: pods: list"

    for node in "ab":
        sources.reports[node].publish("kubernetes", "chat", {"standing": "ok", "writing": True})
    sources.pass_time(200)
    assert "a and b write" in views(sources, "a")["kubernetes/chat"].trouble


def test_who_is_set_aside_is_no_candidate() -> None:
    sources = SharedSources("a", "b")
    for node in "ab":
        sources.reports[node].publish("dns", "metal", {"standing": "aside"})
    sources.pass_time(200)
    metal = views(sources, "a")["dns/metal"]
    assert (metal.writer, metal.standby) == ("", "")
    assert [one.standing for one in metal.members] == ["aside", "aside"]


def test_nothing_is_told_where_there_is_nothing() -> None:
    assert view_of(SharedSources("a"), "a") == []


def test_a_file_that_its_node_cannot_read_is_trouble_whatever_others_read() -> None:
    sources = SharedSources("a", "b")
    failing = {"standing": "failing", "since_ms": 20_000, "trouble": "workers.yaml: it is empty"}
    for node in "ab":
        sources.reports[node].publish("file", "file", failing)
    sources.pass_time(200)
    assert "a, b: the list cannot be read" in views(sources, "a")["file/file"].trouble
    sources.reports["b"].publish("file", "file", {"standing": "ok", "writing": True})
    sources.pass_time(200)
    assert views(sources, "b")["file/file"].trouble.startswith("a: the list")

    for node in "ab":
        sources.reports[node].publish("file", "file", {"standing": "ok", "writing": True})
    sources.pass_time(200)
    assert views(sources, "b")["file/file"].trouble == ""
