"""Settings of pictures: what may be named, and what is said of a model's own processor."""

from typing import Any

import pytest
from pydantic import ValidationError

from smg_node.config.sections.mcp import Mcp
from smg_node.config.sections.media import Media, ModelMedia
from smg_node.config.settings import Settings

HOSTS = ["pics.example.com", "*.example.com", "cdn:8443", "a_b.c-d.e:1"]
NO_HOSTS = ["", "https://a", "a b", "*", "*.*.com", "a:0", "a:65536", "a:x", "[::1]", "a/b", "a:"]


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_are_names_patterns_and_ports(host: str) -> None:
    assert Media(fetch_hosts=(host,)).fetch_hosts == (host,)
    assert Media(fetch_private_hosts=(host,)).fetch_private_hosts == (host,)
    assert Mcp(dynamic_hosts=(host,)).dynamic_hosts == (host,)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused(host: str) -> None:
    for section in (
        lambda: Media(fetch_hosts=(host,)),
        lambda: Media(fetch_private_hosts=(host,)),
        lambda: Mcp(dynamic_hosts=(host,)),
    ):
        with pytest.raises(ValidationError, match=r"is none of pics\.example\.com"):
            section()


def test_networks_are_for_private_hosts_only() -> None:
    for network in ("10.0.0.0/8", "fd00::/8", "127.0.0.1", "::1"):
        assert Media(fetch_private_hosts=(network,)).fetch_private_hosts == (network,)
    with pytest.raises(ValidationError, match="is none of"):
        Media(fetch_hosts=("10.0.0.0/8",))


def test_a_model_has_numbers_of_its_own() -> None:
    said: Any = {"m": {"media": {"processor": '{"max_pixels": 5}'}}}
    assert Settings(models=said).models["m"].media.processor == '{"max_pixels": 5}'
    assert Settings(models={"m": {}}).models["m"].media.processor is None  # type: ignore[dict-item]  # as files have it


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "it must be a JSON object"),
        ("5", "such as"),
        ('[{"max_pixels": 5}]', "such as"),
        ('{"max_pixels": 5', "it must be a JSON object"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": NaN}', "NaN is no number"),
        ("[" * 2000, "it must be a JSON object"),
    ],
)
def test_numbers_of_a_model_are_one_json_object(said: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ModelMedia(processor=said)
