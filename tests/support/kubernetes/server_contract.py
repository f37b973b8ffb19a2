"""What discovery relies on of an API server, asked of the scripted one and of a real one: so that the former is no fairy tale."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from support.kubernetes.source_contract import KubeStage

SELECTED: Final = "labelSelector=app%3Dvllm"


def pods_of(stage: KubeStage, *query: str) -> str:
    """Return the path of a request about the pods of the stage."""
    return f"/api/v1/namespaces/{stage.namespace}/pods?{'&'.join(query)}"


async def three_pods(stage: KubeStage) -> str:
    """Make three pods; return the version of a list of them."""
    for number in range(3):
        labels, ip = {"app": "vllm"}, f"10.1.0.{number + 1}"
        await stage.client.pod(f"vllm-{number}", namespace=stage.namespace, labels=labels, ip=ip)
    listed = await stage.client.do("GET", pods_of(stage, SELECTED))
    return str(listed["metadata"]["resourceVersion"])


def told(line: dict[str, Any]) -> tuple[str, str, bool]:
    """Return type, name and whether its end is ordered."""
    metadata = line["object"]["metadata"]
    return line["type"], metadata.get("name", ""), "deletionTimestamp" in metadata


async def events_are_of_what_matches(stage: KubeStage) -> None:
    """What does not match any more is deleted as it matched last, with the version of the change; back, it is added."""
    version = await three_pods(stage)
    client, namespace = stage.client, stage.namespace
    await client.mark(namespace, "vllm-0", labels={"app": "other"})
    await client.mark(namespace, "vllm-0", labels={"app": "vllm"})
    query = (SELECTED, "watch=1", f"resourceVersion={version}", "timeoutSeconds=1")
    away, back = await client.lines(pods_of(stage, *query))
    assert told(away) == ("DELETED", "vllm-0", False)
    assert told(back) == ("ADDED", "vllm-0", False)
    assert away["object"]["metadata"]["labels"] == {"app": "vllm"}
    assert away["object"]["metadata"]["resourceVersion"] != version


async def an_end_is_ordered_before_it_comes(stage: KubeStage) -> None:
    """Whoever deletes, with a grace or without, of a pod that a node runs or none: the order is told first."""
    version = await three_pods(stage)
    client, namespace = stage.client, stage.namespace
    await client.delete(namespace, "vllm-0")
    await client.delete(namespace, "vllm-0", grace_s=0)
    await client.delete(namespace, "vllm-1", grace_s=0)
    await client.pod("bare", namespace=namespace, labels={"app": "vllm"}, node="")
    await client.delete(namespace, "bare")
    query = (SELECTED, "watch=1", f"resourceVersion={version}", "timeoutSeconds=1")
    lines = await client.lines(pods_of(stage, *query))
    assert [told(line) for line in lines] == [
        ("MODIFIED", "vllm-0", True),
        ("MODIFIED", "vllm-0", True),
        ("DELETED", "vllm-0", True),
        ("MODIFIED", "vllm-1", True),
        ("DELETED", "vllm-1", True),
        ("ADDED", "bare", False),
        ("MODIFIED", "bare", True),
        ("DELETED", "bare", True),
    ]


async def a_quiet_watch_says_that_it_lives(stage: KubeStage) -> None:
    """A watch that hears of nothing brings bookmarks, as long as others change; one from the future is silent."""
    version = await three_pods(stage)
    seconds = stage.bookmark_within_s
    asked = ("watch=1", "allowWatchBookmarks=true", f"timeoutSeconds={seconds}")
    nothing = (*asked, "labelSelector=app%3Dnone", f"resourceVersion={version}")
    future = (*asked, SELECTED, f"resourceVersion={int(version) + 10_000}")

    async def watched(*query: str) -> list[dict[str, Any]]:
        return await stage.client.lines(pods_of(stage, *query), at_most_s=seconds + 30)

    async def change() -> None:
        await asyncio.sleep(0.5)
        await stage.client.mark(stage.namespace, "vllm-0", labels={"more": "x"})

    quiet, silent, _ = await asyncio.gather(watched(*nothing), watched(*future), change())
    assert {line["type"] for line in quiet} == {"BOOKMARK"}
    assert all(line["object"]["metadata"]["resourceVersion"] != version for line in quiet)
    assert silent == []


async def where_nothing_happens_there_is_no_bookmark(stage: KubeStage) -> None:
    """A bookmark brings a newer version: where no object of the kind changed since, there is none to bring."""
    version = await three_pods(stage)
    query = (
        "watch=1",
        "allowWatchBookmarks=true",
        "timeoutSeconds=4",
        f"resourceVersion={version}",
    )
    assert await stage.client.lines(pods_of(stage, *query)) == []


async def versions_are_refused_in_three_ways(stage: KubeStage) -> None:
    """A list of the future is 504, text is 500, and a watch from what is known no more an error under status 200."""
    version = await three_pods(stage)
    client = stage.client
    status, said = await client.ask(
        "GET", pods_of(stage, f"resourceVersion={int(version) + 10_000}")
    )
    assert (status, said["details"]["retryAfterSeconds"]) == (504, 1)
    status, said = await client.ask("GET", pods_of(stage, "watch=1", "resourceVersion=abc"))
    assert (status, said["kind"]) == (500, "Status")
    await client.mark(stage.namespace, "vllm-0", labels={"more": "x"})
    await stage.compact()
    query = ("watch=1", f"resourceVersion={version}", "timeoutSeconds=5")
    (line,) = await client.lines(pods_of(stage, *query))
    assert line["type"] == "ERROR"
    assert (line["object"]["code"], line["object"]["reason"]) == (410, "Expired")


async def an_expired_page_says_how_to_go_on(stage: KubeStage) -> None:
    """A page whose version is known no more is 410, with a token that goes on without being whole."""
    await three_pods(stage)
    client = stage.client
    listed = await client.do("GET", pods_of(stage, "limit=2"))
    token = listed["metadata"]["continue"]
    await client.mark(stage.namespace, "vllm-0", labels={"more": "x"})
    await stage.compact()
    status, said = await client.ask("GET", pods_of(stage, "limit=2", f"continue={token}"))
    assert (status, said["reason"]) == (410, "Expired")
    rest = await client.do(
        "GET", pods_of(stage, "limit=2", f"continue={said['metadata']['continue']}")
    )
    assert [pod["metadata"]["name"] for pod in rest["items"]] == ["vllm-2"]
    assert rest["metadata"]["resourceVersion"] != listed["metadata"]["resourceVersion"]


async def a_watch_without_a_version_begins_with_all(stage: KubeStage) -> None:
    """Without a version, or from 0, what is there comes as added."""
    await three_pods(stage)
    for version in ("", "&resourceVersion=0"):
        path = pods_of(stage, SELECTED, "watch=1", f"timeoutSeconds=1{version}")
        lines = await stage.client.lines(path)
        names = [f"vllm-{number}" for number in range(3)]
        assert sorted(told(line) for line in lines) == [("ADDED", name, False) for name in names]


async def the_older_address_is_believed(stage: KubeStage) -> None:
    """Where a pod's two fields of addresses contradict each other, the single one counts."""
    await three_pods(stage)
    path = f"/api/v1/namespaces/{stage.namespace}/pods/vllm-0/status"
    said = {"status": {"podIP": "10.9.0.1", "podIPs": [{"ip": "10.9.0.2"}]}}
    pod = await stage.client.do("PATCH", path, said, kind="application/merge-patch+json")
    assert pod["status"]["podIP"] == "10.9.0.1"
    assert pod["status"]["podIPs"] == [{"ip": "10.9.0.1"}]


async def a_namespace_that_is_gone_is_empty(stage: KubeStage) -> None:
    """Pods of a namespace that is not there are an empty list, and no error."""
    listed = await stage.client.do("GET", "/api/v1/namespaces/nowhere/pods?limit=5")
    assert listed["items"] == []


SERVER_CONTRACT: Final[tuple[Callable[[KubeStage], Awaitable[None]], ...]] = (
    events_are_of_what_matches,
    an_end_is_ordered_before_it_comes,
    a_quiet_watch_says_that_it_lives,
    where_nothing_happens_there_is_no_bookmark,
    versions_are_refused_in_three_ways,
    an_expired_page_says_how_to_go_on,
    a_watch_without_a_version_begins_with_all,
    the_older_address_is_believed,
    a_namespace_that_is_gone_is_empty,
)
