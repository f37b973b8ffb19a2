"""Peers that pods show: which of them count, at which port, and what is said of those that cannot be understood."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.discovery.kubernetes.objects import NotUnderstoodError, read_page
from smg_node.discovery.kubernetes.peer_pods import PeerPods, peer_pods
from support.kubernetes.pod_text import a_list, pod

PORT = "sglang.ai/mesh-port"


def peers(*pods: dict[str, Any]) -> PeerPods:
    return peer_pods(read_page(a_list(*pods)), port_annotation=PORT, port=7946)


def test_a_pod_counts_from_its_address_on_and_those_that_are_ready_come_first() -> None:
    found = peers(
        pod("smg-0", ip=""),
        pod("smg-1", ip="10.1.0.1", ready="False"),
        pod("smg-2", ip="10.1.0.2", phase="Pending", ready="False"),
        pod("smg-3", ip="10.1.0.3"),
    )
    assert found == PeerPods((("10.1.0.3", 7946), ("10.1.0.1", 7946), ("10.1.0.2", 7946)))


@pytest.mark.parametrize(
    "gone", [pod(deleted=True), pod(phase="Succeeded"), pod(phase="Failed"), pod(ip="")]
)
def test_a_pod_that_ends_has_ended_or_has_no_address_is_no_peer(gone: dict[str, Any]) -> None:
    assert peers(gone) == PeerPods(())


def test_the_annotation_says_the_port_and_a_wrong_one_costs_only_itself() -> None:
    found = peers(
        pod("smg-0", ip="10.1.0.1", annotations={PORT: " 7000 "}),
        pod("smg-1", ip="10.1.0.2", annotations={PORT: "7000,7001"}),
        pod("smg-2", ip="10.1.0.3", annotations={PORT: "70000"}),
        pod("smg-3", ip="not an address"),
    )
    assert found.places == (("10.1.0.1", 7000), ("10.1.0.2", 7946), ("10.1.0.3", 7946))
    assert found.wrong == (
        f"pod serving/smg-1: its annotation {PORT} is '7000,7001', and no port: 7946 is taken",
        f"pod serving/smg-2: its annotation {PORT} is '70000', and no port: 7946 is taken",
        "pod serving/smg-3: its address 'not an address' is none",
    )


def test_a_pod_of_two_families_is_one_peer_and_a_place_counts_once() -> None:
    found = peers(
        pod("smg-0", ip="fd00:0::1", podIPs=[{"ip": "fd00:0::1"}, {"ip": "10.1.0.1"}]),
        pod("smg-1", ip="fd00::1", ready="False"),
    )
    assert found.places == (("fd00::1", 7946),)


def test_what_is_no_pod_does_not_take_away_the_others() -> None:
    page = json.loads(a_list(pod("smg-0", ip="10.1.0.1")))
    page["items"] += [7, {"metadata": {}}]
    found = peer_pods(read_page(json.dumps(page).encode()), port_annotation=PORT, port=1)
    assert found.places == (("10.1.0.1", 1),)
    assert len(found.wrong) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "status", "podIP", "podIPs", "ip", "name", "uid", "items", "phase"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
def test_any_items_are_places_that_can_be_called_or_are_named(items: list[Any]) -> None:
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
    found = peer_pods(read_page(body), port_annotation=PORT, port=7946)
    assert all(host and 0 < port < 65_536 for host, port in found.places)
    assert len(found.places) + len(found.wrong) <= len(items)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_page_or_a_refusal(body: bytes) -> None:
    try:
        page = read_page(body)
    except NotUnderstoodError:
        return
    peer_pods(page, port_annotation=PORT, port=7946)
