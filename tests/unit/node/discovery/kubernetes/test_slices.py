"""Endpoint slices → sightings."""

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.discovery.kubernetes.objects import NotUnderstoodError, read_slice
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.reading import Reading
from smg_node.discovery.kubernetes.selection import selection_of
from smg_node.discovery.kubernetes.slices import SliceReader
from smg_node.discovery.kubernetes.watching import ListWatch
from smg_node.discovery.sighting import SightingState
from support.kubernetes.pod_text import a_list, event

OPTIONS = KubernetesOptions(service="vllm", port="50051")


def a_slice(
    *endpoints: dict[str, Any],
    name: str = "vllm-abc",
    family: str = "IPv4",
    ports: Any = (("grpc", 50051),),
) -> dict[str, Any]:
    """A slice as an API server writes it."""
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": "serving",
            "resourceVersion": "7",
            "labels": {"kubernetes.io/service-name": "vllm"},
        },
        "addressType": family,
        "endpoints": list(endpoints),
        "ports": ports and [{"name": it, "port": port, "protocol": "TCP"} for it, port in ports],
    }


def an_endpoint(ip: str, pod: str = "", **conditions: bool) -> dict[str, Any]:
    """An endpoint, of a pod if it has one."""
    target = {"kind": "Pod", "name": pod, "namespace": "serving", "uid": f"uid-of-{pod}"}
    return {
        "addresses": [ip],
        **({"conditions": conditions} if conditions else {}),
        **({"targetRef": target, "nodeName": "node-1", "zone": "north"} if pod else {}),
    }


def read(said: dict[str, Any], **options: Any) -> Reading:
    chosen = KubernetesOptions(service="vllm", **{"port": "50051", **options})
    return SliceReader(chosen).read(read_slice(json.dumps(said).encode()))


def test_an_endpoint_of_a_pod_is_that_pod() -> None:
    (one,) = read(a_slice(an_endpoint("10.1.0.1", "vllm-0"))).sightings
    assert (one.endpoint, one.instance, one.origin) == (
        "10.1.0.1:50051",
        "uid-of-vllm-0",
        "pod serving/vllm-0",
    )
    assert dict(one.url.labels) == {
        "k8s.namespace": "serving",
        "k8s.node": "node-1",
        "k8s.pod": "vllm-0",
        "zone": "north",
    }


def test_an_endpoint_without_a_pod_has_no_instance() -> None:
    (one,) = read(a_slice(an_endpoint("192.0.2.7"))).sightings
    assert (one.instance, one.origin) == ("", "slice serving/vllm-abc")


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ({}, SightingState.READY),
        ({"serving": True}, SightingState.READY),
        ({"ready": True}, SightingState.READY),
        ({"ready": False}, SightingState.UNREADY),
        ({"ready": False, "serving": True, "terminating": True}, SightingState.LEAVING),
        ({"ready": True, "terminating": True}, SightingState.LEAVING),
    ],
)
def test_what_is_not_said_has_a_meaning(conditions: dict[str, bool], state: SightingState) -> None:
    (one,) = read(a_slice(an_endpoint("10.1.0.1", "vllm-0", **conditions))).sightings
    assert one.state is state


@pytest.mark.parametrize(
    ("port", "ports", "expected"),
    [
        ("7000", None, "10.1.0.1:7000"),
        ("grpc", (("http", 80), ("grpc", 7001)), "10.1.0.1:7001"),
        ("", (("http", 80),), "10.1.0.1:80"),
        ("", ((None, 81),), "10.1.0.1:81"),
    ],
)
def test_ports_are_those_of_the_slice_or_a_number(port: str, ports: Any, expected: str) -> None:
    reading = read(a_slice(an_endpoint("10.1.0.1"), ports=ports), port=port)
    assert [one.endpoint for one in reading.sightings] == [expected]


def test_a_port_that_is_not_there_is_named_once() -> None:
    reading = read(a_slice(an_endpoint("10.1.0.1"), an_endpoint("10.1.0.2")), port="http")
    assert reading.sightings == ()
    assert [one.why for one in reading.unusable] == ["none of its ports is called 'http'"]


def test_addresses_that_are_none_cost_only_themselves() -> None:
    names = {"addresses": ["vllm.example"]}
    reading = read(a_slice(names, {"addresses": None}, an_endpoint("10.1.0.1"), family="FQDN"))
    assert [one.endpoint for one in reading.sightings] == ["10.1.0.1:50051"]
    assert [one.why for one in reading.unusable] == [
        "its address 'vllm.example' is none",
        "its address '' is none",
    ]


def watched(*slices: dict[str, Any]) -> ListWatch:
    one = ListWatch(selection_of(OPTIONS).read, Random(1))
    one.next_step(1)
    whole(one.take_page(a_list(*slices), 1))
    one.next_step(1)
    one.watch_opened(1)
    return one


def test_of_two_families_one_is_shown() -> None:
    four = a_slice(an_endpoint("10.1.0.1", "vllm-0"))
    six = a_slice(an_endpoint("fd00::1", "vllm-0"), name="vllm-six", family="IPv6")
    for slices in ((four, six), (six, four)):
        assert list(watched(*slices).view.sightings) == ["10.1.0.1:50051"]
    assert list(watched(six).view.sightings) == ["[fd00::1]:50051"]
    # A slice without endpoints says that there are none, and not that the other family is meant.
    assert list(watched(a_slice(), six).view.sightings) == []


def test_an_endpoint_that_moves_to_another_slice_stays() -> None:
    one = watched(a_slice(an_endpoint("10.1.0.1", "vllm-0")))
    moved = a_slice(an_endpoint("10.1.0.1", "vllm-0"), name="vllm-second")
    one.feed(event("ADDED", moved), 2)
    assert list(one.view.sightings) == ["10.1.0.1:50051"]
    one.feed(event("MODIFIED", a_slice()), 3)
    assert list(one.view.sightings) == ["10.1.0.1:50051"]
    assert one.view.gone == frozenset()


def test_an_endpoint_that_ended_is_gone_and_one_that_vanished_is_missing() -> None:
    first = an_endpoint("10.1.0.1", "vllm-0", ready=False, terminating=True)
    one = watched(a_slice(first, an_endpoint("10.1.0.2", "vllm-1")))
    one.feed(event("MODIFIED", a_slice()), 2)
    assert dict(one.view.sightings) == {}
    assert one.view.gone == {"10.1.0.1:50051"}


def test_a_service_is_asked_for_by_its_label() -> None:
    selection = selection_of(OPTIONS)
    assert selection.list_path("serving", "") == (
        "/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices"
        "?labelSelector=kubernetes.io%2Fservice-name%3Dvllm&limit=500"
    )
    assert selection.place("*") == "endpointslices in all namespaces"


def test_selectors_and_versions_are_escaped() -> None:
    selection = selection_of(KubernetesOptions(" app=a,b in (c, d),!e ", port="1"))
    assert selection.watch_path("*", "a&b", 300) == (
        "/api/v1/pods?labelSelector=app%3Da%2Cb%20in%20%28c%2C%20d%29%2C%21e"
        "&watch=1&resourceVersion=a%26b&allowWatchBookmarks=true&timeoutSeconds=300"
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_a_slice_or_not_understood(text: bytes) -> None:
    with suppress(NotUnderstoodError):
        SliceReader(OPTIONS).read(read_slice(text))


@given(
    st.lists(st.text(max_size=20) | st.sampled_from(["10.0.0.1", "::1"]), max_size=4),
    st.sampled_from(["", "IPv4", "IPv6", "FQDN", "more"]),
)
def test_any_text_in_a_slice_is_a_reading(addresses: list[str], family: str) -> None:
    said = a_slice(*({"addresses": [it]} for it in addresses), family=family)
    reading = read(said)
    assert len(reading.sightings) + len(reading.unusable) == len(addresses)
