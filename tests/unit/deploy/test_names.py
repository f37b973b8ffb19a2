"""What deploy/ says of the program is true of the program: flags, environment, ports, paths, metrics, times."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperCommand
from typer.main import get_command

from smg_chaos.cli import app as chaos_app
from smg_node.admin.cli import build_app
from smg_node.admin.options import hoisted
from smg_node.cluster.membership.shutdown import SUPERSEDED
from smg_node.config.schema.knob import Schema
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import parse_flags
from smg_node.config.sources.environment import read_environment
from smg_node.http.route_table import ROUTES
from smg_node.telemetry.metrics.declared.node import METRICS

_ROOT = Path(__file__).parents[3]
_DEPLOY = _ROOT / "deploy"
_SCHEMA = Schema(Settings)
_SETTINGS = Settings()
_CHART = _DEPLOY / "helm" / "smg-node"
_WRITTEN = sorted(
    path
    for folder in ("compose", "docker", "envoy", "haproxy", "helm", "nginx", "systemd")
    for path in (_DEPLOY / folder).rglob("*")
    if path.is_file() and path.suffix not in (".lock", ".key") and path.name != ".env"
)
_BUILD_ARGUMENTS = frozenset({"SMG_COMMIT"})
"""Read when a wheel is built (`tools/compile.py`), not by the program."""
_ACTION = re.compile(r"{{.*?}}")


def _compose() -> dict[str, Any]:
    text = (_DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


def _of_chart(template: str) -> str:
    return (_CHART / "templates" / template).read_text(encoding="utf-8")


def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((_CHART / "values.yaml").read_text(encoding="utf-8"))
    return values


def _drain_s() -> float:
    return _SETTINGS.drain.settle_s + _SETTINGS.drain.grace_s


@pytest.mark.parametrize("path", _WRITTEN, ids=lambda path: str(path.relative_to(_DEPLOY)))
def test_a_file_names_only_metrics_and_variables_that_there_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"\bsmg_node_[a-z_]+\b(?!-)", text)) <= {one.name for one in METRICS}
    names = set(re.findall(r"\bSMG_[A-Z_]+\b", text))
    assert names <= {knob.environment for knob in _SCHEMA.knobs} | _BUILD_ARGUMENTS


@pytest.mark.parametrize("path", _WRITTEN, ids=lambda path: str(path.relative_to(_DEPLOY)))
def test_a_probe_asks_for_a_path_that_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    asked = set(re.findall(r"(?:uri |httpGet: {path: |http_health_check: {path: )(/\w+)", text))
    assert asked <= {route.path for route in ROUTES}
    assert asked or path.name not in ("haproxy.cfg", "envoy.yaml", "statefulset.yaml")


@pytest.mark.parametrize("service", [name for name in _compose() if name.startswith("node-")])
def test_a_node_of_the_laptop_cluster_takes_its_environment(service: str) -> None:
    environment = _compose()[service]["environment"]
    entries, problems = read_environment(environment, _SCHEMA)
    assert (len(entries), problems) == (len(environment), [])
    assert environment["SMG_NAME"] == service


def test_the_chart_gives_nodes_only_flags_that_there_are() -> None:
    lines = re.findall(r"^ +- (--.+)$", _of_chart("statefulset.yaml"), re.MULTILINE)
    asked = parse_flags([_ACTION.sub("1", line) for line in lines], _SCHEMA)
    assert len(lines) >= 10
    assert asked.problems == []


def test_the_service_gives_its_node_only_flags_that_there_are() -> None:
    text = (_DEPLOY / "systemd" / "smg-node.service").read_text(encoding="utf-8")
    found = re.search(r"^ExecStart=/usr/bin/env smg-node (.+)$", text, re.MULTILINE)
    assert found
    assert parse_flags(found[1].split(), _SCHEMA).problems == []


@pytest.mark.parametrize(
    "words",
    [
        _compose()["migrate"]["entrypoint"],
        _compose()["engine-a"]["entrypoint"],
        ["smg-admin", "--timeout", "4", "status"],
        ["smg-admin", "--url", "http://gateway:30000", "status"],
    ],
    ids=" ".join,
)
def test_a_command_of_a_container_is_one(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    carried_out: list[str | None] = []
    monkeypatch.setattr(TyperCommand, "invoke", lambda command, _: carried_out.append(command.name))
    program, *rest = words
    admin = program == "smg-admin"
    command = get_command(build_app() if admin else chaos_app)
    command.main(hoisted(rest) if admin else rest, program, standalone_mode=False)
    assert len(carried_out) == 1


def test_the_image_asks_how_it_is_with_the_command_that_was_tried() -> None:
    text = (_DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert 'CMD ["smg-admin", "--timeout", "4", "status"]' in text
    command = _of_chart("tests/ready.yaml").partition("command:")[2].partition("volumeMounts:")[0]
    words = re.findall(r"^ +- (\S+)", command, re.MULTILINE)
    assert (words[0], words[-1]) == ("smg-admin", "status")
    assert any(word.startswith("--url=") for word in words)
    # At the public port, which says so wherever operators come.
    assert "admin" not in _of_chart("tests/ready.yaml").replace("smg-admin", "")


def test_ports_are_those_that_a_node_listens_on() -> None:
    http, metrics = _SETTINGS.http.listen.port, _SETTINGS.http.metrics_listen.port
    mesh = _SETTINGS.mesh.listen.port
    assert _values()["ports"] == {"http": http, "metrics": metrics, "mesh": mesh}
    dockerfile = (_DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f"EXPOSE {http}/tcp {metrics}/tcp {mesh}/tcp {mesh}/udp" in dockerfile
    prometheus = (_DEPLOY / "compose" / "prometheus.yaml").read_text(encoding="utf-8")
    scraped = yaml.safe_load(prometheus)["scrape_configs"][0]["static_configs"][0]["targets"]
    nodes = [name for name in _compose() if name.startswith("node-")]
    assert scraped == [f"{node}:{metrics}" for node in nodes]


def test_whoever_stops_a_node_waits_until_it_can_have_drained() -> None:
    graces = [_compose()[name]["stop_grace_period"] for name in _compose() if "node-" in name]
    assert all(float(grace.removesuffix("s")) > _drain_s() for grace in graces)
    unit = (_DEPLOY / "systemd" / "smg-node.service").read_text(encoding="utf-8")
    found = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert found
    assert float(found[1]) > _drain_s()
    drain = _values()["drain"]
    assert (drain["settleSeconds"], drain["graceSeconds"]) == (
        _SETTINGS.drain.settle_s,
        _SETTINGS.drain.grace_s,
    )
    assert "terminationGracePeriodSeconds: {{ add" in _of_chart("statefulset.yaml")


def test_no_secret_of_the_chart_stands_in_an_argument() -> None:
    statefulset, job = _of_chart("statefulset.yaml"), _of_chart("migration.yaml")
    assert ".Values.storage" not in statefulset + job
    assert "SMG_STORAGE__URL" in _of_chart("_names.tpl")
    assert "secretKeyRef" in _of_chart("_names.tpl")


@pytest.mark.parametrize("lock", ["runtime.lock", "build.lock"])
def test_an_image_is_made_of_what_was_tested(lock: str) -> None:
    """Where this fails: bash tools/deploy.sh lock."""

    def pins(path: Path) -> dict[str, set[str]]:
        blocks = re.split(r"^(?=\S)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        return {
            block.split(" ", 1)[0]: set(re.findall(r"sha256:[0-9a-f]{64}", block))
            for block in blocks
            if "==" in block
        }

    tested = pins(_ROOT / "requirements.lock")
    made_of = pins(_DEPLOY / "docker" / lock)
    assert made_of
    assert {name: sums - tested.get(name, set()) for name, sums in made_of.items()} == {
        name: set() for name in made_of
    }


def test_the_service_is_not_started_again_where_its_name_is_taken() -> None:
    unit = (_DEPLOY / "systemd" / "smg-node.service").read_text(encoding="utf-8")
    assert re.findall(r"^(Restart\w*)=(.*)$", unit, re.MULTILINE) == [
        ("Restart", "always"),
        ("RestartSec", "1"),
        ("RestartPreventExitStatus", str(SUPERSEDED)),
    ]
