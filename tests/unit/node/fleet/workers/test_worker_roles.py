"""What part a worker plays, and how it shares requests: its engine's word, its operator's, and where they differ."""

import pytest

from smg_node.config.worker_url import parse_worker_url
from smg_node.engines.disaggregation import Pairing, Role
from smg_node.engines.engine import Contract, MediaCard, ModelCard
from smg_node.fleet.workers.worker_roles import (
    bootstrap_address_of,
    encoding_of,
    misfit,
    pairing_of,
    role_of,
)
from support.engines.fake_engine import card

ROOM = Pairing("room", group="mooncake", bootstrap_port=9001)
NIXL = Pairing("nixl", group="NixlConnector block_size=16")


def engine(role: Role = "regular", pairing: Pairing | None = None) -> ModelCard:
    return card(contract=Contract.SGLANG, role=role, pairing=pairing)


HTTP = card(contract=Contract.OPENAI)
HTTP_ROOM = card(contract=Contract.OPENAI, role="prefill", pairing=ROOM)


@pytest.mark.parametrize(
    ("said", "told", "role"),
    [
        ("regular", None, "regular"),
        ("decode", None, "decode"),
        ("regular", "prefill", "prefill"),
        ("regular", "decode", "decode"),
        ("prefill", "regular", "prefill"),
        ("decode", "prefill", "decode"),
    ],
)
def test_the_operator_says_the_role_unless_it_is_everything_and_then_the_engine_does(
    said: str, told: Role | None, role: Role
) -> None:
    url = parse_worker_url(f"grpc://h:1?role={said}")
    assert role_of(url, None if told is None else engine(told)) == role


@pytest.mark.parametrize(
    ("query", "known", "says"),
    [
        ("", engine(), ""),
        ("", engine("prefill", ROOM), ""),
        ("role=prefill", engine("prefill", ROOM), ""),
        ("role=decode", engine("regular", NIXL), ""),
        ("role=prefill&label.kv_connector=Nixl", HTTP, ""),
        (
            "role=prefill",
            engine("decode", ROOM),
            "was started for decode, and is registered as pre",
        ),
        ("role=decode", engine("prefill", ROOM), "was started for prefill, and is registered as d"),
        ("role=prefill", engine(), "was not started to share requests"),
        ("role=decode&label.kv_connector=x", engine(), "was not started to share requests"),
        ("", engine("decode"), "was started for decode, and does not say how"),
        ("role=decode", HTTP, "its label kv_connector must be sglang, nixl, mooncake or store"),
        ("role=decode&label.kv_connector=mooncake", HTTP, ""),
        ("role=prefill&label.kv_connector=mooncake", HTTP, "its label kv_engine_id is missing"),
        ("role=prefill&label.kv_connector=mooncake&label.kv_engine_id=e", HTTP, ""),
        ("", HTTP_ROOM, ""),
        ("role=prefill&label.kv_connector=rack7", HTTP_ROOM, ""),
        ("role=decode", HTTP_ROOM, "was started for prefill, and is registered as decode"),
        ("role=decode&label.kv_connector=lmcache", HTTP, "its label kv_connector must be sglang,"),
    ],
)
def test_a_worker_that_cannot_play_its_part_says_why(
    query: str, known: ModelCard, says: str
) -> None:
    found = misfit(parse_worker_url(f"h:1?{query}" if query else "h:1"), known)
    assert says in found
    assert bool(says) is bool(found)


def test_nobody_knows_how_a_worker_is_paired_before_its_engine_was_asked() -> None:
    assert pairing_of(parse_worker_url("h:1?label.kv_connector=nixl"), None) is None


def test_without_a_word_of_the_operators_the_engines_counts_as_it_is() -> None:
    assert pairing_of(parse_worker_url("h:1?label.zone=a"), engine("prefill", ROOM)) is ROOM


def test_the_operators_labels_are_laid_over_what_the_engine_says() -> None:
    url = parse_worker_url("h:1?label.kv_connector=rack7&bootstrap_port=9100")
    assert pairing_of(url, engine("prefill", ROOM)) == Pairing("room", "rack7", 9100)
    only_host = parse_worker_url("h:1?label.bootstrap_host=10.0.0.9")
    assert pairing_of(only_host, engine("prefill", ROOM)) == ROOM
    assert pairing_of(only_host, engine()) is None


@pytest.mark.parametrize(
    ("label", "style"),
    [("sglang", "room"), ("NIXL", "nixl"), ("mooncake", "minted"), ("store", "store")],
)
def test_of_an_http_worker_the_label_is_how_it_is_paired(label: str, style: str) -> None:
    url = parse_worker_url(f"http://h:1?label.kv_connector={label}&label.kv_engine_id=e7")
    found = pairing_of(url, HTTP)
    assert found is not None
    assert (found.style, found.group, found.engine_id) == (style, "", "e7")


def test_an_http_worker_of_which_nobody_says_it_is_not_paired() -> None:
    assert pairing_of(parse_worker_url("http://h:1?bootstrap_port=5"), HTTP) is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ROOM),
        ("?bootstrap_port=7", Pairing("room", "mooncake", 7)),
        # All that carry one style for a label can be paired, whatever else they say.
        ("?label.kv_connector=SGLang", Pairing("room", "", 9001)),
        ("?label.kv_connector=nixl", Pairing("nixl")),
        ("?label.kv_connector=rack7", Pairing("room", "rack7", 9001)),
    ],
)
def test_an_http_worker_that_says_how_it_is_paired_is_believed(query: str, found: Pairing) -> None:
    assert pairing_of(parse_worker_url(f"http://h:1{query}"), HTTP_ROOM) == found


def test_partners_meet_at_the_workers_own_host_and_the_usual_port_unless_somebody_says_so() -> None:
    url = parse_worker_url("grpc://h:1")
    assert bootstrap_address_of(url, Pairing("room")) == ("h", 8998)
    assert bootstrap_address_of(url, ROOM) == ("h", 9001)
    other = parse_worker_url("grpc://h:1?label.bootstrap_host=10.0.0.9&bootstrap_port=5")
    assert bootstrap_address_of(other, pairing_of(other, engine("prefill", ROOM))) == (
        "10.0.0.9",
        5,
    )


SEEN = MediaCard(ways=frozenset({"tensors"}))
BLIND = MediaCard(ways=frozenset({"references"}))


@pytest.mark.parametrize(
    ("query", "known", "encoding", "says"),
    [
        (
            "",
            card(contract=Contract.TOKENSPEED, role="encode", pairing=ROOM, media=SEEN),
            "room",
            "",
        ),
        (
            "role=encode",
            card(contract=Contract.TOKENSPEED, role="encode", pairing=ROOM, media=SEEN),
            "room",
            "",
        ),
        ("role=encode", card(contract=Contract.VLLM, media=SEEN), "cache", ""),
        ("", card(contract=Contract.VLLM, media=SEEN), None, ""),
        (
            "role=encode",
            card(contract=Contract.TOKENSPEED, media=SEEN),
            "room",
            "was not started to encode pictures",
        ),
        (
            "role=prefill",
            card(contract=Contract.TOKENSPEED, role="encode", pairing=ROOM, media=SEEN),
            None,
            "was started for encode, and is registered as prefill",
        ),
        ("role=encode", card(contract=Contract.VLLM), "cache", "takes no pictures"),
        ("role=encode", card(contract=Contract.VLLM, media=BLIND), "cache", "takes no pictures"),
        ("role=encode", card(contract=Contract.SGLANG, media=SEEN), None, "speak sglang cannot"),
        ("role=encode", HTTP, None, "speak openai cannot encode"),
    ],
)
def test_who_can_encode_pictures_for_others(
    query: str, known: ModelCard, encoding: str | None, says: str
) -> None:
    url = parse_worker_url(f"grpc://h:1?{query}" if query else "grpc://h:1")
    if known is HTTP:
        url = parse_worker_url(f"http://h:1?{query}")
    assert encoding_of(url, known) == encoding
    found = misfit(url, known)
    assert says in found
    assert bool(found) == bool(says)
    assert encoding_of(url, None) is None
