"""Discovery knobs: sources of each kind, the flags of other gateways, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from smg_node.config.schema.knob import Schema
from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.sections.discovery import Discovery
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import parse_flags
from smg_node.config.sources.loader import load_settings

_SCHEMA = Schema(Settings)
_FILE = """\
discovery:
  kubernetes:
    chat:
      selector: app=vllm,tier in (chat)
      namespace: serving
      port: 50051
      scheme: grpc
      model_from: label:model
      spec: "&priority=60&label.pool=chat"
  dns:
    metal: {name: _grpc._tcp.vllm.example, servers: []}
  file: /etc/smg-node/workers.json
  empty_confirm_s: 30
"""


def _settings(*argv: str, environ: dict[str, str] | None = None) -> Settings:
    asked = parse_flags(argv, _SCHEMA)
    return load_settings(asked, environ or {}, _SCHEMA).settings


def _loaded(*argv: str, environ: dict[str, str] | None = None) -> Discovery:
    return _settings(*argv, environ=environ).discovery


def _refusal(*argv: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        _loaded(*argv)
    return str(caught.value)


def test_nothing_is_configured_unless_something_is_said() -> None:
    assert not Discovery().configured
    assert Discovery(file=Path("/x")).configured
    assert Discovery(command="list-workers --json").configured


def test_a_file_names_sources_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(_FILE)

    said = _loaded("--config", str(tmp_path / "c.yaml"))

    chat = said.kubernetes["chat"]
    assert (chat.selector, chat.namespace, chat.port) == (
        "app=vllm,tier in (chat)",
        "serving",
        "50051",
    )
    assert said.dns["metal"].name == "_grpc._tcp.vllm.example"
    assert said.configured


def test_a_source_is_given_by_flags_and_by_the_environment() -> None:
    by_flag = _loaded("--discovery.kubernetes.chat.selector", "app=vllm")
    by_name = _loaded(
        environ={"SMG_DISCOVERY__DNS": '{"metal": {"name": "a.example", "port": "1"}}'}
    )

    assert by_flag.kubernetes["chat"].selector == "app=vllm"
    assert by_name.dns["metal"].port == "1"


def test_flags_of_other_gateways_name_selections_of_pods() -> None:
    said = _loaded(
        *("--service-discovery", "--selector", "app=vllm", "tier=chat", "--decode-selector"),
        *("app=decode", "--service-discovery-port", "50051", "--service-discovery-namespace", "ns"),
        *("--model-id-from", "namespace", "--kv-connector-annotation", "a/b"),
        *("--kv-engine-id-annotation", "c/d"),
    ).pods

    assert said.names == ("pods-regular", "pods-decode")
    assert said.selections["regular"] == ("app=vllm", "tier=chat")
    assert (said.port, said.namespace, said.model_from) == (50051, "ns", "namespace")
    assert (said.connector_annotation, said.engine_id_annotation) == ("a/b", "c/d")


def test_peers_are_selected_by_our_settings_or_by_flags_of_other_gateways() -> None:
    ours = _settings(
        *("--insecure-mesh", "--mesh.kubernetes-selector", "app in (node)"),
        *("--mesh.kubernetes-namespace", "gateways"),
    )
    theirs = _settings(
        *("--insecure-mesh", "--service-discovery", "--router-selector", "app=smg", "tier=gw"),
        *("--router-mesh-port-annotation", "x/port"),
    )

    assert _settings().peer_pods[0] == ""
    assert ours.peer_pods == ("app in (node)", "gateways")
    assert ours.mesh.kubernetes_port_annotation == "sglang.ai/mesh-port"
    assert theirs.peer_pods == ("app=smg,tier=gw", "*")
    assert theirs.mesh.kubernetes_port_annotation == "x/port"
    assert not theirs.discovery.configured


@pytest.mark.parametrize(
    ("flag", "said", "why"),
    [
        ("--model-id-from", "model", "it must be namespace, label:KEY or annotation:KEY"),
        ("--model-id-from", "label:", "no key of a label"),
        ("--service-discovery-namespace", "Bad NS", "no name of a namespace"),
        ("--kv-connector-annotation", "a b", "no key of an annotation"),
        ("--kv-engine-id-annotation", "", "no key of an annotation"),
    ],
)
def test_flags_of_other_gateways_are_held_to_what_sources_are(
    flag: str, said: str, why: str
) -> None:
    refused = _refusal("--service-discovery", "--selector", "app=vllm", flag, said)
    assert why in refused
    assert flag in refused


def test_the_provider_file_asks_no_api_server() -> None:
    argv = ("--service-discovery", "--discovery-provider", "file", "--discovery-file", "/x")

    said = _loaded(*argv, "--discovery-check-interval-secs", "5")

    assert said.pods.names == ()
    assert (said.file, said.check_interval_s) == (Path("/x"), 5)
    assert "needs discovery.file" in _refusal(*argv[:3])


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--service-discovery",), "needs --selector"),
        (("--selector", "app=x"), "need --service-discovery"),
        (("--service-discovery", "--selector", "app"), "no label such as"),
        (("--router-selector", "app=x"), "need --service-discovery"),
        (("--service-discovery", "--router-selector", "app"), "no label such as"),
        (("--service-discovery", "--router-selector", "app=x"), "--insecure-mesh for plain text"),
        (("--mesh.kubernetes-selector", "app=x"), "mesh.kubernetes_selector needs mesh.key_file"),
        (
            (
                *("--insecure-mesh", "--service-discovery", "--router-selector", "app=x"),
                *("--mesh.kubernetes-selector", "app=y"),
            ),
            "give one of them",
        ),
        (("--router-mesh-port-annotation", "a b"), "no key of an annotation"),
        (("--mesh.kubernetes-namespace", "A b"), "no name of a namespace"),
        (("--discovery.kubernetes.Chat.selector", "a"), "no name of a source"),
        (("--discovery-file", "/x", "--discovery.command", "y"), "cannot both be given"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_reason(argv: tuple[str, ...], why: str) -> None:
    assert why in _refusal(*argv)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "needs a selector"),
        ({"selector": "a", "service": "b"}, "and not both"),
        ({"selector": "a", "namespace": "A b"}, "no name of a namespace"),
        ({"selector": "a", "port": "70000"}, "neither a port nor"),
        ({"selector": "a", "port": "a_b"}, "neither a port nor"),
        ({"selector": "a", "role_from": "annotation:x"}, "must be label:KEY"),
        ({"selector": "a", "model_from": "label:"}, "no key of a label"),
        ({"selector": "a", "spec": "&priority=x"}, "priority"),
        ({"selector": "a", "connector_annotation": "a b"}, "no key of an annotation"),
    ],
)
def test_a_wrong_selection_of_pods_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Discovery(kubernetes={"chat": fields})  # type: ignore[dict-item]  # read by pydantic


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "needs a name"),
        ({"name": "a.example"}, "needs a port"),
        ({"name": "a.example", "port": "x"}, "no port from 1"),
        ({"name": "_a._tcp.example", "port": "1"}, "has its own"),
        ({"name": "a.example", "port": "1", "servers": ["x"]}, "host and a port"),
        ({"name": "a.example", "port": "1", "servers": [":53"]}, "no name server"),
    ],
)
def test_a_wrong_name_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Discovery(dns={"metal": fields})  # type: ignore[dict-item]  # read by pydantic


def test_the_flags_source_has_its_name_for_itself() -> None:
    why = _refusal(
        *("--service-discovery", "--selector", "a=b"),
        *("--discovery.kubernetes.pods-regular.selector", "x"),
    )
    assert "--service-discovery calls its own source" in why
