import math
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from smg_node.config.address import Address
from smg_node.config.schema.declaration import Section, text
from smg_node.config.schema.knob import ANY_NAME, Knob, Schema
from smg_node.config.settings import Settings
from support.tools.configuration import SCHEMA

_NUMBERS = [knob for knob in SCHEMA.knobs if knob.kind in ("integer", "number")]


def _with(knob: Knob, value: object) -> dict[str, Any]:
    tree: Any = value
    for name in reversed(knob.path):
        tree = {"some-model" if name == ANY_NAME else name: tree}
    assert isinstance(tree, dict)
    if knob.dotted == "mesh.probe_timeout_s":
        # Its other bound is the probe interval.
        tree["mesh"]["probe_interval_s"] = 60
    if knob.dotted.startswith("auth.issuers."):
        # An issuer is nothing without these.
        needed = {"issuer": "https://a.example", "audiences": ["a"], "role_map": {"*": "admin"}}
        tree["auth"]["issuers"]["some-model"] |= needed
    return tree


def _settings(**tree: Any) -> Settings:
    """Settings made of plain values, as a file gives them."""
    return Settings(**tree)


def _at(settings: Settings, knob: Knob) -> object:
    value: Any = settings
    for name in knob.path:
        value = value["some-model"] if name == ANY_NAME else getattr(value, name)
    return value


def test_the_defaults_are_a_usable_node() -> None:
    settings = Settings()
    assert settings.http.listen == Address("0.0.0.0", 30000)
    assert settings.http.metrics_listen == Address("0.0.0.0", 29000)
    assert settings.data_dir == Path.home() / ".local/share/smg-node"
    assert settings.workers.urls == ()
    assert settings.demo is False


def test_the_process_environment_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMG_DEMO", "true")
    monkeypatch.setenv("DEMO", "true")
    monkeypatch.setenv("HTTP", '{"nesting_max": 9}')
    assert Settings() == Settings(demo=False)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().http.nesting_max = 5


def test_every_knob_says_what_it_does() -> None:
    for knob in SCHEMA.knobs:
        assert knob.says.endswith("."), knob.dotted
        assert knob.default, knob.dotted


def test_every_number_has_bounds_and_a_reason_for_them() -> None:
    assert len(_NUMBERS) > 40
    for knob in _NUMBERS:
        assert knob.low is not None, knob.dotted
        assert knob.high is not None, knob.dotted
        assert knob.low < knob.high, knob.dotted
        assert knob.why, knob.dotted


def test_every_number_with_a_unit_names_it_last() -> None:
    for knob in _NUMBERS:
        if knob.kind == "number":
            assert knob.path[-1].endswith(("_s", "_ratio", "_price")), knob.dotted


@pytest.mark.parametrize("knob", _NUMBERS, ids=lambda knob: knob.dotted)
def test_a_number_is_accepted_on_its_bounds_and_refused_beyond_them(knob: Knob) -> None:
    assert knob.low is not None
    assert knob.high is not None
    for bound in (knob.low, knob.high):
        assert _at(Settings(**_with(knob, bound)), knob) == bound
    whole = knob.kind == "integer"
    below = knob.low - 1 if whole else math.nextafter(knob.low, -math.inf)
    above = knob.high + 1 if whole else math.nextafter(knob.high, math.inf)
    nothing = below if _may_be_unset(knob) else None
    for value in (below, above, True, "5", nothing):
        with pytest.raises(ValidationError):
            Settings(**_with(knob, value))


def _may_be_unset(knob: Knob) -> bool:
    return ANY_NAME in knob.path or _at(Settings(), knob) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_may_be_endless(value: float) -> None:
    with pytest.raises(ValidationError):
        _settings(stream={"keepalive_s": value})


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"name": "a b"}, "not a node name"),
        ({"name": ""}, "not a node name"),
        ({"name": "Node-A"}, "lower-case"),
        ({"name": "n" * 64}, "at most 63"),
        ({"http": {"listen": "nowhere"}}, "host and a port"),
        ({"http": {"listen": 30000}}, "quotes"),
        ({"http": {"request_id_headers": ["a b"]}}, "not a header name"),
        ({"http": {"cors_allowed_origins": ["chat.example.org"]}}, "not an origin"),
        ({"http": {"cors_allowed_origins": ["https://a.example/"]}}, "not an origin"),
        ({"http": {"cors_allowed_origins": ["https://a.example,https://b.example"]}}, "origin"),
        ({"http": {"cors_allowed_origins": ["https://[::1"]}}, "not an origin"),
        ({"http": {"metrics_listen": "0.0.0.0:30000"}}, "they need two ports"),
        ({"http": {"admin_listen": "nowhere"}}, "host and a port"),
        ({"http": {"admin_listen": "unix:admin.sock"}}, "absolute path"),
        ({"http": {"admin_listen": f"unix:/{'a' * 107}"}}, "at most 107 bytes"),
        ({"http": {"admin_tls": True}}, "needs http.admin_listen"),
        ({"http": {"admin_tls": True, "admin_listen": "unix:/a"}}, "a host and a port"),
        ({"http": {"admin_tls": True, "admin_listen": ":1"}}, "needs http.tls.certificate"),
        ({"http": {"trusted_proxies": ["10.0.0.0/99"]}}, "no network"),
        ({"auth": {"certificates": {"a": {"match": "*", "tenant": "t"}}}}, "trusted_proxies"),
        ({"engine": {"tls": {"authorities": [""]}}}, "has a name"),
        ({"storage": {"tls": {"authority": "a"}}}, "not for sqlite"),
        ({"storage": {"tls": {"certificate": "a"}}}, "needed together"),
        ({"storage": {"tls": {"certificate": "a", "key": "b"}}}, "needs storage.tls.authority"),
        ({"workers": {"urls": ["ftp://h:1"]}}, "use grpc://host:port or http://host:port"),
        ({"workers": {"allowed_networks": ["10.0.0.0/99"]}}, "write a network"),
        ({"routing": {"policy": "No Such"}}, "not a policy name"),
        ({"telemetry": {"otlp_endpoint": "collector:4318"}}, "must be a URL"),
        ({"telemetry": {"otlp_endpoint": "http://[::1"}}, "must be a URL"),
        ({"models": {" x": {}}}, "not a model name"),
        ({"models": {"x": {"aliases": ["a\nb"]}}}, "not a model name"),
        ({"nobody": 1}, "not permitted"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings(**tree)


def test_addresses_files_and_networks_of_other_wires_are_taken() -> None:
    settings = _settings(
        http={"admin_listen": ":31000", "trusted_proxies": ["10.1.2.3/8", "::1"]},
        engine={"tls": {"authorities": ["~/a.pem", "/b.pem"]}},
        storage={"url": "rediss://h", "tls": {"authority": "~/ca.pem"}},
        auth={"certificates": {"a": {"match": "*", "tenant": "t"}}},
    )
    assert settings.http.admin_listen == "0.0.0.0:31000"
    assert settings.http.trusted_proxies == ("10.0.0.0/8", "::1/128")
    assert settings.http.admin_scheme == "http"
    assert settings.engine.tls.authorities == (str(Path.home() / "a.pem"), "/b.pem")
    assert settings.storage.tls.authority == Path.home() / "ca.pem"
    socket = _settings(http={"admin_listen": "unix:/run/smg/admin.sock"}).http
    assert socket.admin_listen == "unix:/run/smg/admin.sock"


def test_values_are_brought_into_one_spelling() -> None:
    settings = _settings(
        data_dir="~/x",
        http={"request_id_headers": ["X-Request-Id"], "cors_allowed_origins": ["*", "http://h:8"]},
        workers={"allowed_networks": ["10.1.2.3/8", "::1"]},
        models={"m": {"tokenizer": "~/t"}},
    )
    assert settings.data_dir == Path.home() / "x"
    assert settings.http.request_id_headers == ("x-request-id",)
    assert settings.workers.allowed_networks == ("10.0.0.0/8", "::1/128")
    assert settings.models["m"].tokenizer == Path.home() / "t"


def test_two_free_ports_are_not_one_port() -> None:
    settings = _settings(http={"listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0"})
    assert settings.http.listen.port == 0


@pytest.mark.parametrize(
    ("host", "name"),
    [("a_b c!", "a_b-c-"), ("", "smg-node"), ("-x", "x"), ("GPU-1.Lan", "gpu-1.lan")],
)
def test_any_host_name_gives_a_node_name(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert Settings().name == name


def test_the_table_of_knobs_finds_names_below_a_mapping() -> None:
    found = SCHEMA.at(("models", "meta/llama-3.1", "context"))
    assert isinstance(found, Knob)
    assert found.dotted == "models.NAME.context"
    assert SCHEMA.at(("models", "meta/llama-3.1", "contxt")) is None


def test_a_misspelled_knob_has_a_neighbour() -> None:
    assert SCHEMA.suggest(("http", "nesting_maxx")) == "http.nesting_max"
    assert SCHEMA.suggest(("keepalive_s",)) == "stream.keepalive_s"
    assert SCHEMA.suggest(("http", "keepalive_s")) == "stream.keepalive_s"
    assert SCHEMA.suggest(("zzzzzzzz",)) is None


class _Locked(Section):
    """Something locked."""

    key: SecretStr = text(SecretStr("hunter2"), "A key.", most=64)


def test_a_secret_never_shows_in_the_table_of_knobs() -> None:
    knob, twin = Schema(_Locked).knobs
    assert (knob.kind, twin.kind, twin.content_of) == ("secret", "path", ("key",))
    assert "hunter2" not in repr((knob, twin))
