"""Workers by role: flags of their own, in words that users of other gateways know, and one list of all."""

from pathlib import Path

import pytest

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.output.effective_config import render_settings
from support.tools.configuration import load, refusal, write_yaml


def test_without_any_there_are_none() -> None:
    assert load().settings.workers.listed == ()


def test_each_role_has_a_flag_and_a_prefill_worker_may_have_its_port_behind_it() -> None:
    flags = [
        *("--worker", "grpc://a:1?model=m"),
        *("--prefill", "grpc://b:1", "8998", "grpc://c:1?model=m", "9000"),
        *("--prefill", "grpc://d:1", "none"),
        *("--decode", "grpc://e:1?role=decode", "http://f:1"),
    ]
    settings = load(flags).settings
    for read in (settings, plain_settings(settings)):
        assert read.workers.listed == (
            "grpc://a:1?model=m",
            "grpc://b:1?role=prefill&label.bootstrap_port=8998",
            "grpc://c:1?role=prefill&model=m&label.bootstrap_port=9000",
            "grpc://d:1?role=prefill",
            "grpc://e:1?role=decode",
            "http://f:1?role=decode",
        )


def test_encode_workers_are_given_as_other_gateways_take_them() -> None:
    flags = ["--encode", "grpc://a:1", "18995", "--encode", "grpc://b:1", "none"]
    more = ["--worker", "grpc://c:1?role=encode&label.encode_group=left"]
    settings = load([*flags, *more]).settings
    assert settings.workers.listed == (
        "grpc://c:1?role=encode&label.encode_group=left",
        "grpc://a:1?role=encode&label.bootstrap_port=18995",
        "grpc://b:1?role=encode",
    )
    routing = settings.routing
    said = (routing.encode_policy, routing.encode_timeout_s, routing.encode_fallback)
    assert said == ("consistent_hashing", 30, True)


def test_a_file_and_the_environment_say_them_too(tmp_path: Path) -> None:
    said = """
        workers:
          prefill_urls: [grpc://a:1, "8998"]
    """
    file = write_yaml(tmp_path, said)
    loaded = load(["--config", file], {"SMG_WORKERS__DECODE_URLS": "grpc://b:1,grpc://c:1"})
    assert loaded.settings.workers.listed == (
        "grpc://a:1?role=prefill&label.bootstrap_port=8998",
        "grpc://b:1?role=decode",
        "grpc://c:1?role=decode",
    )
    page = render_settings(loaded.settings, loaded.origins)
    again = load(["--config", write_yaml(tmp_path, page)]).settings
    assert again.workers == loaded.settings.workers


@pytest.mark.parametrize(
    ("flags", "knob", "says"),
    [
        (["--prefill", "ftp://a:1"], "prefill_urls", "'ftp' is unknown"),
        (["--prefill", "a:1", "1", "2"], "prefill_urls", "'2': it needs a port"),
        (["--prefill", "8998", "a:1"], "prefill_urls", "'8998': it needs a port"),
        (["--prefill", "a:1", "70000"], "prefill_urls", "no port from 1 to 65535"),
        (["--prefill", "a:1?bootstrap_port=3", "5"], "prefill_urls", "given twice"),
        (["--prefill", "a:1?role=decode"], "prefill_urls", "its role is decode"),
        (["--decode", "a:1?role=prefill"], "decode_urls", "its role is prefill"),
        (["--decode", "a:1", "8998"], "decode_urls", "'8998': it needs a port"),
        (["--encode", "a:1?role=decode"], "encode_urls", "its role is decode"),
        (["--encode", "a:1", "70000"], "encode_urls", "no port from 1 to 65535"),
    ],
)
def test_what_cannot_be_is_refused_by_the_knobs_name(
    flags: list[str], knob: str, says: str
) -> None:
    (line,) = refusal(flags)
    assert line.startswith(f"workers.{knob}")
    assert says in line
    assert flags[0] in line


@pytest.mark.parametrize(
    "flags",
    [
        ["--worker", "grpc://a:1", "--prefill", "grpc://a:1"],
        ["--prefill", "grpc://a:1", "--decode", "grpc://A:1?model=m"],
        ["--encode", "grpc://a:1", "--decode", "grpc://a:1"],
    ],
)
def test_one_engine_is_not_listed_for_two_roles(flags: list[str]) -> None:
    (line,) = refusal(flags)
    assert "grpc://a:1 is listed in" in line


def test_one_engine_may_be_listed_twice_for_one_role() -> None:
    listed = load(["--prefill", "grpc://a:1", "--prefill", "grpc://a:1"]).settings.workers.listed
    assert listed == ("grpc://a:1?role=prefill",) * 2


def test_each_half_of_a_request_has_a_policy_of_its_own() -> None:
    routing = load().settings.routing
    said = (routing.prefill_policy, routing.decode_policy, routing.fallback_regular)
    assert said == ("cache_aware", "least_load", True)
    flags = [
        *("--prefill-policy", "bucket", "--decode-policy", "power_of_two"),
        *("--no-routing.fallback-regular", "--models.m.prefill-policy", "random"),
    ]
    settings = load(flags).settings
    routing = settings.routing
    said = (routing.prefill_policy, routing.decode_policy, routing.fallback_regular)
    assert said == ("bucket", "power_of_two", False)
    model = settings.models["m"]
    assert (model.policy, model.prefill_policy, model.decode_policy) == (None, "random", None)
    assert "is not a policy name" in refusal(["--decode-policy", "Least Load"])[0]
