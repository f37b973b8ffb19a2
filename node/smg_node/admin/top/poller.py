"""Poller of the cluster: reads it through one node, and through another when that is silent.

It may ask the nodes given to it, and all that those named as living: an operator goes on to see the
cluster while the first node dies. A node that answers operators at a listener of their own is asked there; one that does
so at a socket, or at an address of its own machine, cannot be asked from another. A node that refuses is not passed over, as the others would
refuse as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.top.snapshot import Snapshot, SnapshotError, read_snapshot

ASK_S: Final = 5.0
"""Longer than a node waits for its peers."""
TRIED_MAX: Final = 8
"""So many nodes are tried for one look."""
_METRICS: Final = ("v1", "cluster", "metrics")
_LIMITS: Final = ("v1", "cluster", "limits")
_SOCKET: Final = "unix"
_MISSING: Final = 404
_BROKEN: Final = 500


class Poller:
    """Poller; `client` has the key and the time-out, `urls` are the nodes to begin with."""

    def __init__(self, client: AdminClient, urls: Sequence[str]) -> None:
        assert urls, "there is one node to begin with"
        self._client: Final = replace(client, timeout_s=min(client.timeout_s, ASK_S))
        self._told: Final = list(dict.fromkeys(urls))
        self._seen: list[str] = []
        self._apart: list[str] = []
        """Living nodes that cannot be asked from here."""
        self.url = self._told[0]
        """The node that is asked first: the one that answered last."""

    def look(self, *, workers: bool, limits: bool) -> Snapshot:
        """Return the cluster as it is now; AdminError if no node can be asked, or one refuses."""
        troubles: list[str] = []
        for url in self._candidates():
            client = replace(self._client, url=url)
            try:
                snapshot = read_snapshot(
                    self._ask(client, *_METRICS),
                    self._ask(client, "workers") if workers else None,
                    self._ask(client, *_LIMITS, query={"use": "true"}) if limits else None,
                )
            except _AwayError as error:
                troubles.append(str(error))
                continue
            except SnapshotError as error:
                troubles.append(f"{url}: {error}")
                continue
            self._answered(url, snapshot)
            return snapshot
        more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
        apart = ", ".join(self._apart[:TRIED_MAX])
        away = (
            f"; {apart} can be asked on their own machines only (http.admin_listen)"
            if apart
            else ""
        )
        raise AdminError(f"{troubles[0]}{more}{away}")

    def _candidates(self) -> Iterator[str]:
        every = dict.fromkeys([self.url, *self._told, *self._seen])
        yield from list(every)[:TRIED_MAX]

    def _answered(self, url: str, snapshot: Snapshot) -> None:
        self.url = url
        scheme, named, rest = url.partition("://")
        if not named:
            # It was asked by its socket: whose credential that is says nothing to the others.
            return
        here = _is_loopback(rest)
        self._seen, self._apart = [], []
        for node in snapshot.nodes.values():
            where = node.admin or node.http
            if not where or node.state != "alive" or node.silent:
                continue
            if node.admin == _SOCKET or (not here and _is_loopback(node.admin)):
                if node.name != snapshot.node:
                    self._apart.append(node.name)
            else:
                self._seen.append(f"{scheme}://{where}")

    def _ask(self, client: AdminClient, *path: str, query: dict[str, str] | None = None) -> Any:
        try:
            answer = client.look("GET", *path, query=query)
        except AdminError as error:
            raise _AwayError(str(error)) from error
        if answer.status == _MISSING:
            raise _AwayError(
                f"{client.url} is of a version that cannot tell this, or does not answer operators there (http.admin_listen)"
            )
        if answer.status >= _BROKEN:
            raise _AwayError(f"{client.url} answered {answer.status}")
        return client.taken(answer)


def _is_loopback(where: str) -> bool:
    """Whether `host:port`, or what follows the scheme of a URL, is the machine that it is said on."""
    host = where.partition("/")[0].rpartition(":")[0] or where
    return host.startswith("127.") or host in ("localhost", "[::1]")


class _AwayError(Exception):
    """This node does not answer now; another one may."""
