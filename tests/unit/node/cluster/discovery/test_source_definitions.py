"""Definitions of sources: what may be said, what is refused and where, and what counts on a node."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.cluster.discovery.source_definitions import (
    FIELDS,
    SPEC,
    Key,
    Options,
    checked_definition,
    merged,
    options_of,
    read_definition,
)
from smg_node.config.sections.discovery import SOURCE_SECTIONS, KubernetesSource
from smg_node.core.errors import SmgError
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.kubernetes.options import KubernetesOptions

CHAT = {"selector": "app=vllm", "port": "50051", "scheme": "grpc"}
METAL = {"name": "_grpc._tcp.vllm.example", "servers": ["10.0.0.1:53"]}


Own: TypeAlias = dict[Key, Options]


@dataclass
class Value:
    """A value as the cluster holds it."""

    key: str
    value: Any
    version: int = 7
    owner: str = "a"
    time_ms: int = 1


def test_what_may_be_said_is_what_the_settings_declare() -> None:
    for kind, section in SOURCE_SECTIONS.items():
        assert FIELDS[kind] == set(section.model_fields)


def test_a_definition_means_the_same_as_the_fields_of_a_file() -> None:
    kept = checked_definition("kubernetes", "chat", {**CHAT, "port": 50051})
    assert kept == {SPEC: CHAT}
    options = read_definition("kubernetes", kept, kubeconfig="/k")
    assert options == KubernetesOptions(
        selector="app=vllm", port="50051", scheme="grpc", kubeconfig="/k"
    )
    section = KubernetesSource(selector="app=vllm", port="50051", scheme="grpc")
    assert options_of("kubernetes", dict(section), kubeconfig="/k") == options
    names = read_definition("dns", checked_definition("dns", "metal", METAL))
    assert names == DnsOptions(METAL["name"], servers=("10.0.0.1:53",))  # type: ignore[arg-type]  # it is text
    rack = checked_definition("dns", "rack", {"name": "a.example", "port": 1, "scheme": "any"})
    assert read_definition("dns", rack) == DnsOptions("a.example", port=1)


@pytest.mark.parametrize(
    ("kind", "name", "body", "where", "why"),
    [
        ("kubernetes", "chat", {"selectr": "a=b"}, "selectr", "did you mean 'selector'"),
        ("kubernetes", "chat", {**CHAT, "port": "no port"}, "port", "neither a port"),
        ("kubernetes", "chat", {**CHAT, "scheme": "grpx"}, "scheme", "did you mean 'grpc'"),
        ("kubernetes", "chat", {**CHAT, "role_from": "x:y"}, "role_from", "label:KEY"),
        ("kubernetes", "chat", {**CHAT, "spec": "prio=3"}, "spec", "prio"),
        ("kubernetes", "chat", {**CHAT, "service": "x"}, None, "not both"),
        ("kubernetes", "chat", {}, None, "it needs a selector"),
        ("kubernetes", "chat", {**CHAT, "kubeconfig": "/x"}, "kubeconfig", "no such field"),
        ("kubernetes", "Chat", CHAT, "name", "no name of a source"),
        ("dns", "metal", {"name": "a.example"}, None, "needs a port"),
        ("dns", "metal", {**METAL, "servers": ["x"] * 9}, "servers", "more than 8 entries"),
        ("dns", "metal", {**METAL, "servers": ["x", 1]}, "servers", "must be text"),
        ("file", "own", {}, "kind", "each node's own"),
        ("consul", "own", {}, "kind", "kubernetes or dns"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(
    kind: str, name: str, body: dict[str, Any], where: str | None, why: str
) -> None:
    with pytest.raises(SmgError) as caught:
        checked_definition(kind, name, body)
    assert caught.value.where == where
    assert why in caught.value.message


def test_the_clusters_word_counts_before_the_nodes_own() -> None:
    own: Own = {
        ("kubernetes", "chat"): KubernetesOptions(selector="own=1"),
        ("dns", "metal"): DnsOptions("_own"),
    }
    found = merged(own, [Value("kubernetes/chat", {SPEC: CHAT})], kubeconfig="/k")
    assert found.unreadable == {}
    assert found.sources["dns", "metal"].version == 0
    chat = found.sources["kubernetes", "chat"]
    assert (chat.version, chat.options) == (
        7,
        KubernetesOptions(selector="app=vllm", port="50051", scheme="grpc", kubeconfig="/k"),
    )


def test_what_cannot_be_read_is_followed_by_nobody_here() -> None:
    own: Own = {
        ("kubernetes", "chat"): KubernetesOptions(selector="own=1"),
        ("kubernetes", "pool"): KubernetesOptions(selector="own=2"),
        ("dns", "metal"): DnsOptions("_own"),
    }
    shared = [
        Value("kubernetes/chat", {SPEC: {**CHAT, "zone_from": "label:zone"}}),
        Value("consul/x", {SPEC: {}}),
        Value("dns/metal", "what a newer release means"),
    ]
    found = merged(own, shared, [Value("kubernetes/pool", b"")])
    assert found.sources == {}
    assert found.unreadable == {
        "kubernetes/chat": "zone_from: this release has no such field",
        "kubernetes/pool": "this release cannot read it",
        "consul/x": "this release knows no source of the kind 'consul'",
        "dns/metal": "it is no definition of a source",
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("kubernetes", {}),
        ("kubernetes", {"selector": " "}),
        ("kubernetes", {**CHAT, "scheme": "quic"}),
        ("kubernetes", {**CHAT, "role": "router"}),
        ("kubernetes", {**CHAT, "port": 1}),
        ("kubernetes", {**CHAT, "spec": "what=1"}),
        ("dns", {"name": "."}),
        ("dns", {"name": "a.example", "port": "x"}),
        ("dns", {"name": "a.example"}),
        ("dns", {**METAL, "servers": "a"}),
    ],
)
def test_a_definition_that_would_select_everything_or_nothing_is_not_followed(
    kind: str, said: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_definition(kind, {SPEC: said})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(sorted(FIELDS["kubernetes"] | FIELDS["dns"])) | st.text(max_size=8)


@given(st.sampled_from(["kubernetes", "dns", "x"]), st.dictionaries(NAMES, JSON), JSON)
def test_any_json_is_a_definition_or_a_plain_refusal(
    kind: str, said: dict[str, Any], value: Any
) -> None:
    for held in ({SPEC: said}, value):
        try:
            options = read_definition(kind, held)
        except ValueError:
            continue
        assert isinstance(options, KubernetesOptions | DnsOptions)
    try:
        kept = checked_definition(kind, "chat", said)
    except SmgError:
        return
    read_definition(kind, kept)
