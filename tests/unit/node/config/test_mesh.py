from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from smg_mesh.config import PROFILES, ProfileName
from smg_node.cluster.membership.mesh_options import mesh_options, swim_options
from smg_node.config.address import split_peer
from smg_node.config.sections.mesh import MeshSection
from smg_node.config.settings import Settings
from smg_node.http.ports.keys import KEYS_FORM, KEYS_META
from support.tools.configuration import load, refusal


def _mesh(**fields: Any) -> MeshSection:
    """The section made of plain values, as a file gives them."""
    return MeshSection(**fields)


def test_a_node_that_is_told_nothing_has_no_mesh() -> None:
    settings = Settings()
    assert settings.mesh.enabled is False
    assert str(settings.mesh.listen) == "0.0.0.0:7946"


@pytest.mark.parametrize("words", [["--mesh-key", "k"], ["--insecure-mesh"]])
def test_a_keyring_opens_the_mesh_and_so_does_doing_without_on_purpose(words: list[str]) -> None:
    assert load([*words, "--join", "a", "b:7", "--join", "10.0.0.1"]).settings.mesh.enabled


def test_the_short_flags_are_those_everybody_writes() -> None:
    said = ["--mesh", "127.0.0.1:0", "--advertise", "10.0.0.9", "--mesh-key", "~/k", "--name", "a"]
    settings = load([*said, "--join", "seed.example.org", "_smg._udp.example.org"]).settings
    assert str(settings.mesh.listen) == "127.0.0.1:0"
    assert settings.mesh.advertise == "10.0.0.9"
    assert settings.mesh.key_file == Path.home() / "k"
    assert settings.mesh.join == ("seed.example.org", "_smg._udp.example.org")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--join", "a:1"], "mesh.join needs mesh.key_file (--mesh-key FILE"),
        (["--mesh-key", "k", "--insecure-mesh"], "mesh.insecure and mesh.key_file exclude"),
        (["--mesh-key", "k", "--mesh.tls.key", "f"], "mesh.tls.certificate and mesh.tls.authority"),
        (
            [
                "--insecure-mesh",
                *(
                    "--mesh.tls.key",
                    "f",
                    "--mesh.tls.certificate",
                    "f",
                    "--mesh.tls.authority",
                    "f",
                ),
            ],
            "mesh.tls needs mesh.key_file",
        ),
        (["--mesh-key", "k", "--join", "::1"], "mesh.join: an IPv6 address needs brackets"),
        (
            ["--mesh-key", "k", "--join", "http://10.0.0.1:7946"],
            "mesh.join: it takes an address without http://, as in 10.0.0.1:7946",
        ),
        (
            ["--mesh-key", "k", "--join", "a", "grpc://b"],
            "mesh.join: it takes an address without grpc://, as in b",
        ),
        (
            ["--mesh-key", "k", "--advertise", "https://a:1/"],
            "mesh.advertise: it takes an address without https://, as in a:1",
        ),
        (
            ["--mesh", "udp://0.0.0.0:7946"],
            "mesh.listen: it takes an address without udp://, as in 0.0.0.0:7946",
        ),
        (["--mesh-key", "k", "--join", "a:0"], "mesh.join: nobody listens on port 0"),
        (["--mesh-key", "k", "--join", "a:b"], "mesh.join: the port must be a number"),
        (["--mesh-key", "k", "--join", "a b"], "mesh.join: "),
        (["--mesh-key", "k", "--join", "_smg._udp.x.org:7"], "SRV records"),
        (["--mesh-key", "k", "--advertise", "0.0.0.0"], "mesh.advertise: nobody can reach"),
        (["--mesh-key", "k", "--advertise", "a:0"], "mesh.advertise: nobody can reach"),
        (["--mesh", "nowhere"], "mesh.listen: it needs a host and a port"),
        (["--mesh.label", "two words"], "mesh.label: 'two words' is not a label"),
        (["--mesh.profile", "lam"], "did you mean 'lan'?"),
        (
            ["--mesh.probe-interval-s", "1", "--mesh.probe-timeout-s", "1"],
            "mesh.probe_timeout_s (1) must be below mesh.probe_interval_s (1)",
        ),
        (["--mesh-key", "k", "--mesh", ":5", "--http", ":5"], "http.listen and mesh.listen"),
    ],
)
def test_nonsense_is_refused_by_the_name_of_the_knob(said: list[str], words: str) -> None:
    assert words in refusal(said)[0]


def test_a_port_may_be_shared_with_a_mesh_that_is_closed() -> None:
    assert load(["--http", ":7946"]).settings.mesh.enabled is False


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("a", ("a", None)),
        ("A.Example.org:7", ("a.example.org", 7)),
        ("10.0.0.1", ("10.0.0.1", None)),
        ("[::1]", ("::1", None)),
        ("[fd00::1]:9", ("fd00::1", 9)),
    ],
)
def test_a_peer_is_a_host_with_or_without_a_port(text: str, peer: tuple[str, int | None]) -> None:
    assert split_peer(text) == peer


@pytest.mark.parametrize("text", ["", ":7", "a:", "[]", "[::1", "[::1]x", "1.2.3", "a/b", "[a]"])
def test_what_is_no_peer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        split_peer(text)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_unset_timers_are_the_profiles(profile: ProfileName) -> None:
    assert swim_options(_mesh(profile=profile)) == PROFILES[profile]


def test_a_timer_that_is_set_outweighs_the_profile_and_no_other() -> None:
    section = _mesh(
        gossip_interval_s=0.25,
        suspicion_mult=5,
        forget_after_s=120,
        relays=0,
        exchange_interval_s=7.5,
        retransmit_mult=2,
        gossip_nodes=5,
        probe_timeout_s=0.1,
    )
    assert swim_options(section) == replace(
        PROFILES["lan"],
        gossip_interval_ms=250,
        suspicion_mult=5,
        forget_after_ms=120_000,
        relays=0,
        exchange_interval_ms=7500,
        retransmit_mult=2,
        gossip_nodes=5,
        probe_timeout_ms=100,
    )


def test_another_probe_interval_brings_a_timeout_in_proportion() -> None:
    swim = swim_options(_mesh(probe_interval_s=0.1))
    assert (swim.probe_interval_ms, swim.probe_timeout_ms) == (100, 40)


def test_the_mesh_is_told_what_the_settings_say(tmp_path: Path) -> None:
    settings = load(
        [
            *("--name", "a", "--mesh", "127.0.0.1:0", "--mesh-key", "k", "--join", "b", "c:1"),
            *("--advertise", "10.0.0.9:7", "--mesh.label", "blue", "--mesh.join-grace-s", "3"),
            *("--mesh.tls.key", "x", "--mesh.tls.certificate", "y", "--mesh.tls.authority", "z"),
            *("--data-dir", str(tmp_path)),
        ]
    ).settings
    options = mesh_options(settings, version="1.2.3")
    assert (options.name, options.listen_host, options.listen_port) == ("a", "127.0.0.1", 0)
    assert (options.advertise, options.join, options.label) == ("10.0.0.9:7", ("b", "c:1"), "blue")
    assert (options.key_file, options.insecure, options.join_grace_s) == (Path("k"), False, 3)
    assert options.tls is not None
    assert (options.tls.key, options.tls.authority) == (Path("x"), Path("z"))
    assert options.data_dir == tmp_path / "mesh" / "a"
    assert options.meta == {"version": "1.2.3", KEYS_META: KEYS_FORM}


def test_half_the_certificates_are_no_certificates() -> None:
    with pytest.raises(ValidationError, match="all three files"):
        _mesh(tls={"key": "x"})
