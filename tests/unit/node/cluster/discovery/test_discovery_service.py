"""Discovery service: sources are defined, changed and removed by version, and told of with what is in force."""

import pytest

from smg_mesh.shared import StateError
from smg_node.cluster.discovery.discovery_service import ClusterSources
from smg_node.cluster.discovery.source_definitions import SOURCES_MAX
from smg_node.core.errors import SmgError
from smg_node.http.ports.shared_state import StaleValueError
from support.shared_sources import SharedSources, SourcesHere

CHAT = {"selector": "app=vllm"}


def test_a_source_is_defined_changed_and_removed_by_version() -> None:
    sources = SharedSources("a", "b")
    service = ClusterSources(SourcesHere(), sources.shared["a"])
    checked = service.check("kubernetes", "chat", CHAT)
    done = service.define("kubernetes", "chat", checked, version=0)
    assert done.before is None
    assert done.after is not None
    assert done.after.spec == CHAT
    with pytest.raises(StaleValueError):
        service.define("kubernetes", "chat", checked, version=0)

    other = ClusterSources(SourcesHere(("kubernetes", "chat")), sources.shared["b"])
    (seen,) = other.view().sources
    assert (seen.defined, seen.overridden, seen.definition) == ("cluster", True, done.after)
    assert seen.trouble == ""
    strange = SourcesHere(**{"kubernetes/chat": "port: this release cannot read it"})
    (alone,) = ClusterSources(strange, sources.shared["b"]).view().sources
    assert "no living node follows" in alone.trouble
    wider = other.check("kubernetes", "chat", {"selector": "app in (vllm,sglang)"})
    changed = other.define("kubernetes", "chat", wider, version=int(done.after.version))
    assert changed.before == done.after
    removed = service.remove("kubernetes", "chat", version=None)
    assert (removed.before, removed.after) == (changed.after, None)
    assert other.view().sources == []
    with pytest.raises(SmgError) as caught:
        service.remove("kubernetes", "chat", version=None)
    assert caught.value.code == "source_not_found"


def test_what_nodes_report_is_of_the_definition_that_is_in_force() -> None:
    sources = SharedSources("a")
    service = ClusterSources(SourcesHere(("dns", "own")), sources.shared["a"])
    sources.reports["a"].publish("dns", "own", {"standing": "ok"})
    sources.reports["a"].publish("kubernetes", "chat", {"standing": "ok"})
    checked = service.check("kubernetes", "chat", CHAT)
    service.define("kubernetes", "chat", checked, version=None)
    told = {f"{one.kind}/{one.name}": one for one in service.view().sources}
    assert (told["dns/own"].defined, told["dns/own"].overridden) == ("node", False)
    assert (told["kubernetes/chat"].defined, told["kubernetes/chat"].trouble) == ("cluster", "")
    assert service.is_own("dns", "own")


def test_there_are_so_many_of_a_kind_and_no_more() -> None:
    sources = SharedSources("a")
    service = ClusterSources(SourcesHere(("kubernetes", "own")), sources.shared["a"])
    checked = service.check("kubernetes", "x", CHAT)
    for number in range(SOURCES_MAX - 1):
        service.define("kubernetes", f"s{number}", checked, version=None)
    with pytest.raises(SmgError, match="64 sources of that kind"):
        service.define("kubernetes", "more", checked, version=None)
    service.define("kubernetes", "s0", checked, version=None)
    names = service.check("dns", "x", {"name": "_x"})
    service.define("dns", "more", names, version=None)


def test_what_a_newer_release_wrote_is_shown_and_may_be_removed() -> None:
    sources = SharedSources("a")
    here = SourcesHere(**{"kubernetes/chat": "this release cannot read it"})
    service = ClusterSources(here, sources.shared["a"])
    sources.definitions["a"].set("kubernetes/chat", "strange", version=None)
    view = service.view()
    assert view.unreadable == {"kubernetes/chat": "this release cannot read it"}
    assert view.sources[0].definition is not None
    assert view.sources[0].definition.spec == {}
    service.remove("kubernetes", "chat", version=int(view.sources[0].definition.version))
    assert service.view().sources == []


def test_a_state_that_cannot_take_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = SharedSources("a")
    service = ClusterSources(SourcesHere(), sources.shared["a"])

    def full(*given: object, **named: object) -> None:
        raise StateError("full", "the document is full")

    monkeypatch.setattr(sources.definitions["a"], "set", full)
    with pytest.raises(SmgError) as caught:
        service.define("kubernetes", "chat", {"spec": CHAT}, version=None)
    assert caught.value.code == "state_full"


def test_workers_of_a_definition_that_nobody_follows_are_not_said_to_go() -> None:
    sources = SharedSources("a")
    sources.find("a", "10.0.0.1")
    here = SourcesHere()
    service = ClusterSources(here, sources.shared["a"])
    (left,) = service.view().sources
    assert (left.defined, left.registered) == ("", 1)
    assert "its workers go after a minute" in left.trouble
    service.define("kubernetes", "chat", service.check("kubernetes", "chat", CHAT), version=0)
    (again,) = service.view().sources
    assert (again.defined, again.registered, again.trouble) == ("cluster", 1, "")
    here.unreadable = {"kubernetes/chat": "nope: this release has no such field"}
    (newer,) = service.view().sources
    assert newer.registered == 1
    assert newer.trouble == (
        "no living node follows the cluster's definition; its workers stay as they are"
    )
