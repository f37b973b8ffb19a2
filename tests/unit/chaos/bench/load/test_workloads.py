from collections.abc import Sequence
from typing import cast

import pytest

from smg_chaos.bench.cli import _EPILOG
from smg_chaos.bench.load.job import Flow
from smg_chaos.bench.load.script import Script, VendorScript
from smg_chaos.bench.load.workload import ROUND, Load, Workload
from smg_chaos.bench.load.workloads import NAMES, WORKLOADS, chosen, paced
from smg_chaos.bench.options import ToolLoad
from smg_chaos.engine.scripts.bundle import tiny_bundle
from smg_chaos.vendor.answers.token_counts import pieces_of

LOAD = Load(clients=5, held_s=2.0, long_sizes=(3000, 3100))


class Saying:
    """A script that says how many tokens were asked for."""

    def text(self, tokens: int) -> str:
        return f"{tokens} tokens"


def flows_of(workload: Workload, load: Load = LOAD) -> Sequence[Flow]:
    return workload.flows(load, cast(Script, Saying()))


def test_every_name_means_a_workload() -> None:
    found = chosen(NAMES, [64, 256])
    more = {"paced-64", "paced-256", "tools-500-alone", "tools-500"}
    more |= {"flash-256", "flash1-1000", "flash-beside-1000"}
    assert {one.name for one in found} == {*WORKLOADS, *more}
    assert {one.name for one in chosen(["vendor"], [])} < WORKLOADS.keys()


def test_what_a_workload_is_compared_with_comes_before_it_and_once() -> None:
    assert [one.name for one in chosen(["burst"], [])] == ["stream1", "burst"]
    assert [one.name for one in chosen(["burst", "short", "stream1"], [])] == [
        "stream1",
        "burst",
        "short",
    ]


def test_all_workloads_before_a_vendor_have_one_name() -> None:
    found = chosen(["vendor"], [])
    assert [one.name for one in found[:4]] == [
        "vendor-native",
        "vendor-native-stream1",
        "vendor-native-burst",
        "vendor-native-paced",
    ]
    assert [one.name.replace("translated", "native") for one in found[4:]] == [
        one.name for one in found[:4]
    ]
    assert {one.behind for one in found} == {"vendor"}
    assert {one.behind for one in chosen(["short", "paced", "mixed"], [64])} == {"engine"}


@pytest.mark.parametrize(("name", "api"), [("native", "messages"), ("translated", "chat")])
def test_a_vendor_is_asked_natively_by_messages_and_else_by_chat(name: str, api: str) -> None:
    for form in ("", "-stream1", "-burst", "-paced"):
        (flow,) = flows_of(WORKLOADS[f"vendor-{name}{form}"])
        assert flow.api == api
        assert flow.stream == bool(form)


def test_help_tells_of_the_workloads_with_pictures_and_of_those_in_front_of_a_vendor() -> None:
    told = set(_EPILOG.split())
    for group in ("pictures", "vendor"):
        assert f"`{group}`" in told
        assert {one.name for one in chosen([group], [])} <= told


def test_runs_of_tools_are_measured_beside_the_same_streams_without_them() -> None:
    load = ToolLoad(streams=(7, 9), step_ms=50, runs_per_s=3.0, result_bytes=1000)
    found = chosen(["tools"], [64], load)
    assert [one.name for one in found] == ["tools-7-alone", "tools-7", "tools-9-alone", "tools-9"]
    assert {one.behind for one in found} == {"tools"}
    assert [one.beside for one in found] == ["", "tools-7-alone", "", "tools-9-alone"]
    (alone,), (streams, runs) = flows_of(found[0]), flows_of(found[1])
    assert alone == streams
    assert (streams.shape, streams.connections, streams.gaps) == ("held", 7, True)
    assert streams.tokens == 40, "2 s of a token every 50 ms"
    assert (runs.shape, runs.rate_per_s, runs.api) == ("open", 3.0, "responses")
    assert runs.prompt.sizes == (1000,)
    assert runs.prompt.first != streams.prompt.first
    # What reads large results must not hold up what measures gaps.
    assert (streams.process, runs.process) == (0, 1)
    assert all(one.clients_min == 2 for one in found)
    assert "1,000 bytes" in found[1].says


def test_an_unknown_workload_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"'brust'.*burst"):
        chosen(["brust"], [])


@pytest.mark.parametrize("workload", [*WORKLOADS.values(), paced(7)], ids=lambda one: one.name)
def test_every_flow_knows_what_it_must_be_answered(workload: Workload) -> None:
    flows = flows_of(workload)
    assert workload.first in {flow.name for flow in flows}
    assert len({flow.name for flow in flows}) == len(flows)
    for flow in flows:
        assert flow.text == f"{flow.tokens} tokens"
        assert flow.connections >= 1
        assert (flow.shape == "open") == (flow.rate_per_s > 0)
        assert flow.shape != "held" or workload.paced


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda one: one.name)
def test_no_two_rounds_share_prompts(workload: Workload) -> None:
    rounds = [flows_of(workload, Load(round=number, long_sizes=(1,))) for number in range(3)]
    firsts = [flow.prompt.first for flows in rounds for flow in flows]
    assert len({first // (ROUND // 2) for first in firsts} | set()) >= 3
    assert min(firsts) >= ROUND


def test_clients_and_rate_shape_the_load() -> None:
    (flow,) = flows_of(WORKLOADS["short"], Load(clients=9, rate_per_s=70.0))
    assert (flow.shape, flow.connections, flow.rate_per_s) == ("open", 9, 70.0)
    (flow,) = flows_of(WORKLOADS["idle"], Load(clients=9, rate_per_s=70.0))
    assert (flow.shape, flow.connections) == ("closed", 1)


def test_held_streams_last_as_long_as_they_are_held() -> None:
    (flow,) = flows_of(paced(96))
    assert (flow.connections, flow.tokens) == (96, 100)


def test_a_script_says_the_same_in_pieces_and_whole() -> None:
    bundle = tiny_bundle("m", vocabulary=4160, context=2048)
    script = Script(bundle, tokens_max=300)
    pieces = script.pieces()
    for tokens in (1, 2, 50, 300):
        assert script.text(tokens) == "".join(pieces[:tokens])
        assert script.text(tokens).isascii()


def test_a_vendor_says_a_word_a_token() -> None:
    script = VendorScript(tokens_max=300)
    pieces = pieces_of(script.prose)
    for tokens in (1, 2, 129, 300):
        assert script.text(tokens) == "".join(pieces[:tokens])


def test_pictures_are_measured_beside_the_same_streams_without_them() -> None:
    alone, beside = chosen(["picture-streams"], [])
    assert (alone.name, beside.name) == ("picture-streams-alone", "picture-streams")
    assert beside.beside == alone.name
    load = Load(held_s=10.0)
    (streams,) = alone.flows(load, None)
    held, pictures = beside.flows(load, None)
    assert (held, held.connections, held.gaps) == (streams, 64, True)
    assert (pictures.name, pictures.shape, pictures.prompt.sizes) == (
        "pictures",
        "closed",
        (4032, 3024),
    )
    assert {held.process, pictures.process} == {0, 1}
    assert {alone.behind, beside.behind} == {"pair"}, "pictures go to an engine of their own"
    assert (pictures.model, beside.companion) == ("seer", "pictures")
