"""Definitions of the cluster go before a node's own; targets follow from them, one worker behind each public name."""

import base64
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from smg_node.cluster.providers.definitions import effective, read_own
from smg_node.cluster.providers.targets import NO_PROVIDER, named_in, targets_of
from smg_node.core.errors import SmgError
from smg_node.providers.provider_spec import ProviderSecrets, write_secrets
from smg_node.providers.secret import Secret

OWN = msgspec.json.encode(
    {
        "providers": {
            "ant": {"kind": "anthropic", "keys": ["sk-own"], "models": ["claude", "haiku"]}
        },
        "routes": {
            "smart": {
                "targets": [{"to": "ant/claude", "weight": 2}, {"to": "goo/gemini", "on": ["rate"]}]
            }
        },
    }
).decode()


@dataclass(frozen=True)
class Row:
    key: str
    value: Any
    version: int = 7
    owner: str = "n2"
    time_ms: int = 5


def sealed(*keys: str) -> dict[str, str]:
    raw = write_secrets(ProviderSecrets(tuple(map(Secret, keys))))
    return {"all": base64.b64encode(b"sealed:" + raw).decode()}


def opened(secret: bytes) -> str | None:
    return secret.removeprefix(b"sealed:").decode() if secret.startswith(b"sealed:") else None


def shown(*rows: Row) -> dict[str, tuple[str, str, str]]:
    """Return of each target its URL, public name and trouble."""
    workers = targets_of(effective(read_own(OWN), rows, opened)).values()
    return {
        one.url.identity: (one.url.endpoint, str(one.url.model), one.trouble) for one in workers
    }


def test_listed_models_and_routes_are_workers() -> None:
    assert shown() == {
        "provider://ant/claude?model=claude": ("provider://ant/claude", "claude", ""),
        "provider://ant/haiku?model=haiku": ("provider://ant/haiku", "haiku", ""),
        "provider://ant/claude?model=smart": ("provider://ant/claude", "smart", ""),
        "provider://goo/gemini?model=smart": ("provider://goo/gemini", "smart", NO_PROVIDER),
    }


def test_labels_say_how_a_target_is_used() -> None:
    found = targets_of(read_own(OWN))
    labels = {
        one.url.endpoint: dict(one.labels) for one in found.values() if one.url.model == "smart"
    }
    assert labels == {
        "provider://ant/claude": {"choose": "weighted", "provider": "ant", "weight": "2"},
        "provider://goo/gemini": {"choose": "weighted", "provider": "goo", "on": "rate"},
    }


def test_the_way_of_a_route_stands_at_each_of_its_targets() -> None:
    row = Row("route/r", {"spec": {"targets": ["ant/claude", "goo/x"], "choose": "fastest"}})
    found = targets_of(effective(read_own(OWN), [row], opened)).values()
    words = {one.url.endpoint: one.labels["choose"] for one in found if one.url.model == "r"}
    assert words == {"provider://ant/claude": "fastest", "provider://goo/x": "fastest"}


def test_a_name_leads_back_to_provider_and_model() -> None:
    row = Row("route/r", {"spec": {"targets": ["bed/arn:aws:bedrock:eu:1:profile/x"]}})
    urls = [one.url for one in targets_of(effective(read_own(""), [row], opened)).values()]
    assert [named_in(url) for url in urls] == [("bed", "arn:aws:bedrock:eu:1:profile/x")]


def test_the_clusters_definition_goes_before_the_nodes_own() -> None:
    spec = {"name": "ant", "kind": "anthropic", "models": [{"model": "opus"}]}
    row = Row("provider/ant", {"spec": spec, "secrets": sealed("sk-shared")})
    now = effective(read_own(OWN), [row], opened)
    ant = now.providers["ant"]
    assert (ant.source, ant.version, ant.owner, ant.trouble) == ("cluster", 7, "n2", "")
    assert ant.secrets.keys == (Secret("sk-shared"),)
    assert "provider://ant/opus?model=opus" in shown(row)
    assert "provider://ant/haiku?model=haiku" not in shown(row)


def test_a_route_takes_the_place_of_a_listed_model_of_its_name() -> None:
    row = Row("route/claude", {"spec": {"targets": ["ant/haiku"]}})
    assert shown(row)["provider://ant/haiku?model=claude"] == ("provider://ant/haiku", "claude", "")
    assert "provider://ant/claude?model=claude" not in shown(row)


def test_secrets_that_do_not_open_are_a_trouble_of_the_target() -> None:
    spec = {"name": "ant", "kind": "anthropic", "models": [{"model": "claude"}]}
    row = Row("provider/ant", {"spec": spec, "secrets": {"all": base64.b64encode(b"?").decode()}})
    assert shown(row)["provider://ant/claude?model=claude"][2] == (
        "its secrets cannot be opened with this node's keyring"
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row("provider/new", {"spec": {"name": "new", "kind": "teleport"}}), "'teleport'"),
        (Row("provider/odd", 7), "no definition"),
        (Row("provider/odd", {"spec": {"name": 7, "kind": "openai"}}), "str"),
        (Row("route/odd", {"spec": {"targets": 7}}), "array"),
    ],
)
def test_what_cannot_be_read_here_is_left_and_told(row: Row, why: str) -> None:
    now = effective(read_own(OWN), [row], opened)
    assert why in now.unreadable[row.key]
    assert set(now.providers) == {"ant"}
    assert set(now.routes) == {"smart"}


def test_a_later_kind_of_document_is_nothing_here() -> None:
    now = effective(read_own(OWN), [Row("shadow/x", {"spec": {}})], opened)
    assert now.unreadable == {}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"providers": {"a": {"kind": "opnai", "keys": ["k"]}}}, "providers.a.kind"),
        ({"routes": {"r": {"targets": []}}}, "targets"),
    ],
)
def test_a_file_that_is_wrong_says_where(said: dict[str, Any], words: str) -> None:
    with pytest.raises(SmgError, match=words):
        read_own(msgspec.json.encode(said).decode())


def labels_of(route: dict[str, Any], own: str = OWN) -> dict[str, dict[str, str]]:
    found = targets_of(effective(read_own(own), [Row("route/r", {"spec": route})], opened)).values()
    ours = ("choose", "provider")
    return {
        one.url.endpoint.removeprefix("provider://"): {
            name: value for name, value in one.labels.items() if name not in ours
        }
        for one in found
        if one.url.model == "r"
    }


def test_a_split_stands_at_the_targets_it_goes_to() -> None:
    route = {"targets": ["ant/claude", "goo/x", "goo/y"], "split": {"to": "goo", "share": 0.1}}
    rule = "split 0.1 tenant"
    assert labels_of(route) == {
        "ant/claude": {},
        "goo/x": {"split": rule},
        "goo/y": {"split": rule},
    }
    route["split"] = {"to": "goo/y", "share": 0.1}
    assert labels_of(route) == {"ant/claude": {}, "goo/x": {}, "goo/y": {"split": rule}}
    route["split"] = {"to": "goo/z", "share": 0.1}
    assert labels_of(route) == {
        "ant/claude": {},
        "goo/x": {},
        "goo/y": {},
        "goo/z": {"split": rule, "only": "split"},
    }


def test_a_provider_s_own_labels_steer_no_route() -> None:
    labels = {"zone": "eu", "only": "shadow", "split": "x 1.0 tenant", "on": "rate", "choose": "y"}
    own = msgspec.json.encode(
        {"providers": {"ant": {"kind": "anthropic", "keys": ["k"], "labels": labels}}}
    )
    assert labels_of({"targets": ["ant/claude"]}, own.decode()) == {"ant/claude": {"zone": "eu"}}
