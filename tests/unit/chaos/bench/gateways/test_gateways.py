import json
from pathlib import Path

import pytest

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.gateways.engines import EngineChoice, grpc_command
from smg_chaos.bench.gateways.gateways import (
    KINDS,
    Place,
    check_installed,
    check_vendors,
    is_installed,
    version_of,
    wanted_of,
)


@pytest.mark.parametrize("name", KINDS)
def test_a_gateway_is_started_on_its_ports_in_front_of_its_engine(
    name: str, tmp_path: Path
) -> None:
    command = KINDS[name].command(Place(4001, 4002, 4003, tmp_path, tmp_path / "peers"))
    words = " ".join(command)
    config = tmp_path / "litellm.yaml"
    words += config.read_text() if config.exists() else ""
    assert "4001" in words
    assert "127.0.0.1:4003" in words
    assert ("4002" in words) == (name != "litellm")


def test_litellm_is_told_its_model_and_engine(tmp_path: Path) -> None:
    KINDS["litellm"].command(Place(1, 2, 3, tmp_path, tmp_path))
    (entry,) = json.loads((tmp_path / "litellm.yaml").read_text())["model_list"]
    assert entry["model_name"] == "simulated"
    assert entry["litellm_params"]["api_base"] == "http://127.0.0.1:3/v1"


def test_the_two_configurations_of_smg_differ_in_their_caches_only(tmp_path: Path) -> None:
    place = Place(1, 2, 3, tmp_path, tmp_path)
    plain, cached = KINDS["smg"].command(place), KINDS["smg-cached"].command(place)
    assert cached[: len(plain)] == plain
    assert cached[len(plain) :] == ["--tokenizer-cache-enable-l0", "--tokenizer-cache-enable-l1"]


def test_a_gateway_is_asked_for_by_kind_label_and_flags() -> None:
    plain, labelled = wanted_of("smg"), wanted_of("b:smg-node --name 'x y' --processes 2")
    assert (plain.label, plain.kind.name, plain.arguments) == ("smg", "smg", ())
    assert (labelled.label, labelled.kind.name) == ("b", "smg-node")
    assert labelled.arguments == ("--name", "x y", "--processes", "2")


@pytest.mark.parametrize("spec", ["", "nginx", "a:nginx", ":smg", "smg:"])
def test_other_gateways_are_refused_with_those_there_are(spec: str) -> None:
    with pytest.raises(BenchError, match="smg-cached"):
        wanted_of(spec)


def test_what_is_not_installed_is_named_with_the_remedy(tmp_path: Path) -> None:
    wanted = [wanted_of(name) for name in ("smg-node", "smg", "smg-cached", "litellm")]
    with pytest.raises(BenchError, match=r"litellm and smg: not installed.*make bench-peers"):
        check_installed(wanted, tmp_path)
    assert is_installed(KINDS["smg-node"], tmp_path)
    for name in ("smg", "litellm"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / name).touch()
    check_installed(wanted, tmp_path)


def test_versions_are_those_of_the_gateways_own_environment(tmp_path: Path) -> None:
    from smg_node import __version__

    assert version_of(KINDS["smg-node"], tmp_path) == __version__
    assert version_of(KINDS["smg"], tmp_path) == "unknown"


def test_the_engine_is_started_without_limits_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "said.txt"
    choice = EngineChoice(tokenizer=tmp_path)
    command = grpc_command(choice, port=5, script=script, step_ms=20)
    words = " ".join(command)
    assert "--server h2 --contract vllm --pace each" in words
    assert "--prefill-tokens-per-s 0" in words
    assert "--itl-ms 20" in words
    assert command[-2:] == ["--tokenizer", str(tmp_path)]


VENDORS = [name for name, kind in KINDS.items() if kind.vendor is not None]


@pytest.mark.parametrize("name", VENDORS)
def test_gateways_before_a_vendor_know_its_address_its_key_and_its_model(
    name: str, tmp_path: Path
) -> None:
    command = KINDS[name].vendor
    assert command is not None
    words = " ".join(command(Place(4001, 4002, 4003, tmp_path, tmp_path / "peers")))
    (file,) = (one for one in tmp_path.iterdir() if one.suffix in (".json", ".yaml"))
    assert str(file) in words
    assert "4001" in words
    assert "--worker" not in words
    said = json.loads(file.read_text())
    if name == "litellm":
        (entry,) = said["model_list"]
        assert entry["model_name"] == "simulated"
        assert entry["litellm_params"] == {
            "model": "anthropic/claude-haiku-4-5",
            "api_base": "http://127.0.0.1:4003",
            "api_key": "sk-vendor",
        }
        return
    assert said == {
        "providers": {
            "stand-in": {
                "kind": "anthropic",
                "base": "http://127.0.0.1:4003",
                "keys": ["sk-vendor"],
            }
        },
        "routes": {"simulated": {"targets": ["stand-in/claude-haiku-4-5"]}},
    }


def test_gateways_that_have_no_vendors_are_refused_with_those_that_have() -> None:
    check_vendors([wanted_of(name) for name in VENDORS])
    with pytest.raises(ValueError, match=r"smg and smg-cached: .* smg-node, .*litellm"):
        check_vendors([wanted_of(name) for name in KINDS])
