"""The scripted cluster: versions, lists and watches."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.kubernetes.answers import RefusedError
from smg_chaos.kubernetes.cluster import Cluster
from smg_chaos.kubernetes.listing import list_page
from smg_chaos.kubernetes.versions import CompactedError
from smg_chaos.kubernetes.watches import Watch


def a_cluster(*names: str) -> Cluster:
    cluster = Cluster(now=lambda: datetime(2026, 11, 1, tzinfo=UTC), rng=Random(1))
    for name in names:
        cluster.create("pods", "serving", {"metadata": {"name": name, "labels": {"app": "vllm"}}})
    return cluster


def page_of(cluster: Cluster, **query: str) -> tuple[list[str], str]:
    page = list_page(cluster.versions, "pods", "serving", query, page_max=500)
    names = [pod["metadata"]["name"] for pod in page["items"]]
    return names, page["metadata"].get("continue", "")


def test_pages_are_of_the_version_of_the_first_one() -> None:
    cluster = a_cluster("a", "b", "c")
    first, token = page_of(cluster, limit="2")
    cluster.delete(("pods", "serving", "c"))
    cluster.create("pods", "serving", {"metadata": {"name": "d"}})
    assert (first, page_of(cluster, limit="2", **{"continue": token})) == (["a", "b"], (["c"], ""))


def test_the_state_at_a_version_is_what_was_there_then() -> None:
    cluster = a_cluster("a")
    at = cluster.versions.version
    cluster.patch(("pods", "serving", "a"), {"metadata": {"labels": {"app": "other"}}})
    (then,) = cluster.versions.state_at(at).values()
    assert then["metadata"]["labels"] == {"app": "vllm"}
    cluster.compact()
    with pytest.raises(CompactedError):
        cluster.versions.state_at(at)
    with pytest.raises(ValueError, match="to come"):
        cluster.versions.state_at(cluster.versions.version + 1)


def test_a_patch_that_changes_nothing_is_no_write() -> None:
    cluster = a_cluster("a")
    at = cluster.versions.version
    cluster.patch(("pods", "serving", "a"), {"metadata": {"labels": {"app": "vllm"}}})
    assert cluster.versions.version == at


def test_a_watch_from_the_future_hears_of_nothing_until_it_is_reached() -> None:
    cluster = a_cluster("a")
    query = {"resourceVersion": str(cluster.versions.version + 2)}
    watch = Watch(cluster.versions, "pods", "serving", query)
    cluster.create("pods", "serving", {"metadata": {"name": "b"}})
    assert list(watch.lines()) == []
    for name in ("c", "d"):
        cluster.create("pods", "serving", {"metadata": {"name": name}})
    assert [b'"name":"d"' in line for line in watch.lines()] == [True]


def test_a_watch_from_what_was_compacted_is_refused() -> None:
    cluster = a_cluster("a", "b")
    watch = Watch(cluster.versions, "pods", "serving", {"resourceVersion": "2"})
    cluster.compact()
    with pytest.raises(RefusedError) as refused:
        list(watch.lines())
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_a_restored_backup_uses_versions_again() -> None:
    cluster = a_cluster("a")
    backup = cluster.backup()
    first = cluster.create("pods", "serving", {"metadata": {"name": "b"}})
    cluster.restore(backup)
    second = cluster.create("pods", "serving", {"metadata": {"name": "b"}})
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert cluster.epoch == 1


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.integers(0, 8))
def test_a_list_and_its_watch_are_the_list_at_the_end(names: list[str], split: int) -> None:
    """Whatever is made and ended: the state at any version with the events after it is the state now."""
    cluster = a_cluster()
    seen: set[str] = set()
    watch = None
    for at, name in enumerate([*names, ""]):
        if at == min(split, len(names)):
            seen = set(page_of(cluster)[0])
            version = {"resourceVersion": str(cluster.versions.version)}
            watch = Watch(cluster.versions, "pods", "serving", version)
        key = ("pods", "serving", name)
        if key in cluster.versions.objects:
            cluster.delete(key)
        elif name:
            cluster.create("pods", "serving", {"metadata": {"name": name}})
    assert watch is not None
    for line in watch.lines():
        (name,) = [it for it in ("a", "b", "c") if f'"name":"{it}"'.encode() in line]
        if line.startswith(b'{"type":"DELETED"'):
            seen.discard(name)
        else:
            seen.add(name)
    assert seen == set(page_of(cluster)[0])
