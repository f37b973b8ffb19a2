"""Machines of lists and watches that have come to a point, for pure tests."""

from random import Random
from typing import Any, Final

from smg_node.core.cooperative_steps import whole
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.selection import selection_of
from smg_node.discovery.kubernetes.watching import ListPage, ListWatch, OpenWatch
from smg_node.discovery.sighting import View
from support.kubernetes.pod_text import a_list

READ: Final = selection_of(KubernetesOptions(selector="app=vllm", port="50051")).read
FIRST, SECOND = "10.1.0.1:50051", "10.1.0.2:50051"
NOW = 1_000_000


def machine(seed: int = 1) -> ListWatch:
    """Return a machine that knows nothing."""
    return ListWatch(READ, Random(seed))


def listed(*pages: bytes, now_ms: int = NOW) -> ListWatch:
    """Return a machine that took those pages."""
    one = machine()
    for page in pages:
        assert isinstance(one.next_step(now_ms), ListPage)
        whole(one.take_page(page, now_ms))
    return one


def watching(*pods: dict[str, Any], now_ms: int = NOW) -> ListWatch:
    """Return a machine whose watch is open."""
    one = listed(a_list(*pods), now_ms=now_ms)
    assert isinstance(one.next_step(now_ms), OpenWatch)
    one.watch_opened(now_ms)
    return one


def shown(view: View) -> dict[str, str]:
    """Return the state at each endpoint."""
    return {endpoint: one.state.value for endpoint, one in view.sightings.items()}
