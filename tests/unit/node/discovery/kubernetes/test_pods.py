"""Pods → sightings."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.discovery.kubernetes.objects import NotUnderstoodError, read_pod
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.pods import PodReader, port_list
from smg_node.discovery.kubernetes.reading import Reading
from smg_node.discovery.sighting import SightingState
from support.kubernetes.pod_text import pod


def read(said: dict[str, Any], **options: Any) -> Reading:
    chosen = KubernetesOptions(selector="app=vllm", **{"port": "50051", **options})
    return PodReader(chosen).read(read_pod(json.dumps(said).encode()))


def urls(reading: Reading) -> list[str]:
    return [one.url.endpoint for one in reading.sightings]


def whys(reading: Reading) -> str:
    return "; ".join(one.why for one in reading.unusable)


def test_a_ready_pod_is_one_worker_with_labels_of_where_it_is() -> None:
    labels = {"app": "vllm", "topology.kubernetes.io/zone": "north"}
    reading = read(pod(labels=labels))
    (one,) = reading.sightings
    assert one.endpoint == "10.1.0.1:50051"
    assert one.url.scheme == ""
    assert one.state is SightingState.READY
    assert one.instance == "uid-of-vllm-0"
    assert one.origin == "pod serving/vllm-0"
    assert dict(one.url.labels) == {
        "k8s.namespace": "serving",
        "k8s.node": "node-1",
        "k8s.pod": "vllm-0",
        "zone": "north",
    }
    assert reading.unusable == ()


@pytest.mark.parametrize(
    ("phase", "ready", "deleted", "state"),
    [
        ("Running", "True", False, SightingState.READY),
        ("Running", "False", False, SightingState.UNREADY),
        ("Running", "Unknown", False, SightingState.UNREADY),
        ("Pending", "True", False, SightingState.UNREADY),
        ("Unknown", "True", False, SightingState.UNREADY),
        ("Running", "True", True, SightingState.LEAVING),
        ("Running", "False", True, SightingState.LEAVING),
    ],
)
def test_its_state_is_of_phase_condition_and_deletion(
    phase: str, ready: str, deleted: bool, state: SightingState
) -> None:
    reading = read(pod(phase=phase, ready=ready, deleted=deleted))
    assert [one.state for one in reading.sightings] == [state]
    assert reading.ends == deleted


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_is_none_though_it_keeps_its_address(phase: str) -> None:
    reading = read(pod(phase=phase))
    assert reading.sightings == ()
    assert reading.ends


def test_a_pod_without_an_address_is_none_and_nothing_is_wrong() -> None:
    assert read(pod(ip="", phase="Pending")) == Reading(created="2026-11-01T10:00:00Z")


def test_an_ipv6_address_gets_brackets_and_one_spelling() -> None:
    assert urls(read(pod(ip="fd00:0::0A"), scheme="grpc")) == ["grpc://[fd00::a]:50051"]


def test_of_two_addresses_the_first_is_taken() -> None:
    listed = [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]
    assert urls(read(pod(podIPs=listed))) == ["10.1.0.1:50051"]
    assert urls(read(pod(ip="", podIPs=listed))) == ["10.1.0.1:50051"]


def test_an_address_that_is_none_is_named() -> None:
    reading = read(pod(ip="10.1.0.256"))
    assert reading.sightings == ()
    assert whys(reading) == "its address '10.1.0.256' is none"


def test_a_port_is_found_by_its_name() -> None:
    said = pod(ports=(("metrics", 9090), ("grpc", 7000)))
    assert urls(read(said, port="grpc", scheme="grpc")) == ["grpc://10.1.0.1:7000"]
    reading = read(said, port="http")
    assert reading.sightings == ()
    assert whys(reading) == "none of its container ports is called 'http'"


def test_without_a_port_the_only_one_that_it_names_is_taken() -> None:
    assert urls(read(pod(ports=(("a", 7000),)), port="")) == ["10.1.0.1:7000"]
    assert "names 2 container ports" in whys(read(pod(ports=(("a", 1), ("b", 2))), port=""))
    assert "names no container ports" in whys(read(pod(ports=()), port=""))


def test_annotated_ports_win_and_each_is_a_worker() -> None:
    reading = read(pod(annotations={"smg.ai/worker-ports": " 7001, 7002"}))
    assert urls(reading) == ["10.1.0.1:7001", "10.1.0.1:7002"]
    assert {one.instance for one in reading.sightings} == {"uid-of-vllm-0"}


@pytest.mark.parametrize(
    "text", ["", ",", "0", "65536", "7001,", "7001;7002", "a", "7001,7001", "-1", "７００１"]
)
def test_wrong_annotated_ports_are_named_and_the_configured_one_is_taken(text: str) -> None:
    reading = read(pod(annotations={"smg.ai/worker-ports": text}))
    assert urls(reading) == ["10.1.0.1:50051"]
    assert "its annotation smg.ai/worker-ports is" in whys(reading)


def test_more_ports_than_a_machine_has_accelerators_are_wrong() -> None:
    assert len(port_list(",".join(map(str, range(1, 65))))) == 64
    assert port_list(",".join(map(str, range(1, 66)))) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8998", ["8998", "8998"]), ("8998,8999", ["8998", "8999"])],
)
def test_bootstrap_ports_are_one_for_all_or_one_each(text: str, expected: list[str]) -> None:
    annotations = {"smg.ai/worker-ports": "7001,7002", "sglang.ai/bootstrap-port": text}
    reading = read(pod(annotations=annotations), role="prefill")
    assert [one.url.labels["bootstrap_port"] for one in reading.sightings] == expected
    assert reading.unusable == ()


def test_a_wrong_bootstrap_port_is_named_and_left_out() -> None:
    annotations = {"sglang.ai/bootstrap-port": "1,2,3"}
    reading = read(pod(annotations=annotations), role="prefill")
    assert "bootstrap_port" not in reading.sightings[0].url.labels
    assert "sglang.ai/bootstrap-port is '1,2,3', and neither one port nor 1 of them" in whys(
        reading
    )


def test_a_bootstrap_port_is_only_for_those_that_work_prompts_off() -> None:
    reading = read(pod(annotations={"sglang.ai/bootstrap-port": "no"}), role="decode")
    assert "bootstrap_port" not in reading.sightings[0].url.labels
    assert reading.unusable == ()


def test_pairing_comes_from_annotations_whose_names_are_options() -> None:
    said = pod(annotations={"smg.ai/kv-connector": "nixl", "our/engine": "e-1"})
    labels = read(said, engine_id_annotation="our/engine").sightings[0].url.labels
    assert labels["kv_connector"] == "nixl"
    assert labels["kv_engine_id"] == "e-1"


def test_a_role_comes_from_a_label_and_else_from_the_options() -> None:
    for role in ("decode", "prefill", "encode", "regular"):
        default = "decode" if role == "prefill" else "prefill"
        reading = read(pod(labels={"role": role}), role_from="label:role", role=default)
        assert reading.sightings[0].url.role == role
        assert reading.unusable == ()
    reading = read(pod(labels={}), role_from="label:role", role="decode")
    assert reading.sightings[0].url.role == "decode"
    reading = read(pod(labels={"role": "queen"}), role_from="label:role")
    assert reading.sightings[0].url.role == "regular"
    assert "its label role is 'queen', and no role" in whys(reading)


@pytest.mark.parametrize(
    ("source", "model"),
    [("", None), ("namespace", "serving"), ("label:m", "qwen"), ("annotation:m", "org/qwen 3")],
)
def test_a_model_comes_from_where_the_options_say(source: str, model: str | None) -> None:
    said = pod(labels={"m": "qwen"}, annotations={"m": "org/qwen 3"})
    assert read(said, model_from=source).sightings[0].url.model == model


def test_a_pod_that_names_no_model_is_asked_for_it() -> None:
    reading = read(pod(), model_from="label:m")
    assert reading.sightings[0].url.model is None
    assert whys(reading) == "it has no label m, so the engine is asked for its model"


def test_the_spec_is_laid_over_every_worker() -> None:
    url = read(pod(), spec="&priority=60&label.pool=chat&contract=vllm").sightings[0].url
    assert (url.priority, url.contract, url.labels["pool"]) == (60, "vllm", "chat")
    with pytest.raises(SmgError, match="colour"):
        read(pod(), spec="colour=red")


def test_what_no_worker_url_can_hold_is_named_and_left_out() -> None:
    annotations = {"smg.ai/kv-connector": "a\nb", "m": "x" * 300}
    reading = read(pod(annotations=annotations), model_from="annotation:m")
    assert "kv_connector" not in reading.sightings[0].url.labels
    assert reading.sightings[0].url.model is None
    assert "its kv_connector is not printable text" in whys(reading)
    assert "its model is not printable text" in whys(reading)


def test_fields_may_be_absent_or_null() -> None:
    bare = {"metadata": {"name": "a", "uid": "u"}, "status": {"podIP": "10.1.0.1"}}
    assert urls(read(bare)) == ["10.1.0.1:50051"]
    nulls: dict[str, Any] = {
        "metadata": {"name": "a", "uid": "u", "labels": None, "annotations": None},
        "spec": {"containers": None},
        "status": {"podIP": "10.1.0.1", "podIPs": None, "conditions": None},
    }
    assert urls(read(nulls)) == ["10.1.0.1:50051"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b'{"metadata":{"name":"a"}}',
        b'{"metadata":{"name":1,"uid":"u"}}',
        b"\xff",
    ],
)
def test_what_is_no_pod_is_not_understood(text: bytes) -> None:
    with pytest.raises(NotUnderstoodError):
        read_pod(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_pod_or_not_understood(text: bytes) -> None:
    with suppress(NotUnderstoodError):
        PodReader(KubernetesOptions(port="1")).read(read_pod(text))


WORDS = st.text(max_size=20)
MAPS = st.dictionaries(
    st.sampled_from(["smg.ai/worker-ports", "sglang.ai/bootstrap-port", "smg.ai/kv-connector", "m"])
    | WORDS,
    WORDS,
    max_size=4,
)


@given(
    ip=WORDS | st.sampled_from(["10.0.0.1", "::1"]),
    phase=WORDS | st.sampled_from(["Running", "Pending", "Failed"]),
    labels=MAPS,
    annotations=MAPS,
    port=st.sampled_from(["", "1", "grpc"]),
    model=st.sampled_from(["", "label:m", "annotation:m", "namespace"]),
)
def test_any_text_in_a_pod_is_a_reading(
    ip: str, phase: str, labels: dict[str, str], annotations: dict[str, str], port: str, model: str
) -> None:
    said = pod(ip=ip, phase=phase, labels=labels, annotations=annotations)
    reading = read(said, port=port, model_from=model, role="prefill", role_from="label:m")
    assert len({one.endpoint for one in reading.sightings}) == len(reading.sightings)
    if ip == "10.0.0.1" and port == "1" and phase == "Running":
        assert reading.sightings
