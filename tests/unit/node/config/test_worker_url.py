from typing import get_args
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.config.worker_url import (
    CONTRACTS,
    PAIRING_LABELS,
    ROLES,
    WorkerUrl,
    parse_worker_url,
    prefill_urls,
    with_role,
)
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.disaggregation import Role
from smg_node.engines.engine import Contract
from smg_node.fleet.workers.worker_roles import ROLES as PARTS
from smg_node.fleet.workers.worker_spec import ids_named, worker_id_of


def test_a_bare_url_says_only_where_the_engine_is() -> None:
    url = parse_worker_url("grpc://10.0.0.7:50051")
    assert url == WorkerUrl("grpc", "10.0.0.7", 50051)
    assert (url.role, url.model, url.contract, dict(url.labels)) == ("regular", None, None, {})
    assert url.address == "10.0.0.7:50051"


def test_everything_can_be_said_in_the_query() -> None:
    url = parse_worker_url(
        "GRPC://[2001:DB8::1]:9/?role=prefill&model=meta%2Fllama 3".replace(" ", "%20")
        + "&contract=vllm&label.zone=a&label.rack=b%26c&label.spot="
    )
    assert url.endpoint == "grpc://[2001:db8::1]:9"
    assert (url.role, url.model, url.contract) == ("prefill", "meta/llama 3", "vllm")
    assert list(url.labels.items()) == [("rack", "b&c"), ("spot", ""), ("zone", "a")]
    assert str(url) == (
        "grpc://[2001:db8::1]:9?role=prefill&model=meta/llama%203&contract=vllm"
        "&label.rack=b%26c&label.spot=&label.zone=a"
    )


def test_priority_and_cost_have_defaults_that_are_not_spelled_out() -> None:
    url = parse_worker_url("grpc://h:1?priority=7&cost=0.25")
    assert (url.priority, url.cost) == (7, 0.25)
    assert str(url) == "grpc://h:1?priority=7&cost=0.25"
    plain = parse_worker_url("grpc://h:1?priority=50&cost=1")
    assert plain == parse_worker_url("grpc://h:1")
    assert str(plain) == "grpc://h:1"


def test_labels_cannot_be_changed_afterwards() -> None:
    labels = parse_worker_url("grpc://h:1?label.a=b").labels
    with pytest.raises(TypeError):
        labels["a"] = "c"  # type: ignore[index]  # the point of the test


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "needs a host and a port"),
        ("://h:1", "nothing before ://"),
        ("10.0.0.7", "needs a port"),
        ("http://", "needs a host and a port"),
        ("http://:80", "needs a host"),
        ("http://::1", "brackets"),
        ("http://h:1/v2", "must not have a path (/v2) other than /v1"),
        ("http://h:1/v1/chat/completions", "looked for at http://h:1/v1"),
        ("https://h/V1", "must not have a path (/V1)"),
        ("http://h:1//", "must not have a path (//)"),
        ("h:1/v1", "write http://h:1/v1"),
        ("grpc://h:1/v1/", "gRPC has none"),
        ("http://me:pw@h:1/v1", "user name or password"),
        ("http://h:1/v1?key=k", "'key' is unknown"),
        ("http://h:1/v1#x", "fragment"),
        ("grpcs://h", "needs a port, as in grpcs://h:50051"),
        ("grpc://h:1?contract=openai", "spoken over HTTP"),
        ("grpc+tls://h:1", "grpcs://host:port"),
        ("grpcs://h:1?contract=openai", "spoken over HTTP"),
        ("ftp://h:1", "'ftp' is unknown"),
        ("grpc://", "needs a host and a port"),
        ("grpc://h", "needs a port, as in grpc://h:50051"),
        ("grpc://:1", "needs a host"),
        ("grpc://h:0", "port 0"),
        ("grpc://h:70000", "0 to 65535"),
        ("grpc://h:1/v1", "must not have a path (/v1)"),
        ("grpc://h:1#x", "fragment"),
        ("grpc://h:1?model=a#x", "fragment"),
        ("grpc://h:1?roel=prefill", "did you mean 'role'?"),
        (
            "grpc://h:1?xyz=1",
            "known: role, model, contract, priority, cost, bootstrap_port, tls_name, label.NAME",
        ),
        ("grpc://h:1?role=encoder", "known: regular, prefill, decode, encode"),
        ("grpc://h:1?tls_name=a", "tls_name is for workers over TLS: grpcs:// or https://"),
        ("h:1?tls_name=a", "tls_name is for workers over TLS: grpcs:// or https://"),
        ("http://h:1?label.tls_name=a", "tls_name is for workers over TLS: grpcs:// or https://"),
        ("grpcs://h:1?tls_name=a%2Fb", "the tls_name 'a/b' is no host name and no address"),
        ("grpcs://h:1?tls_name=a&label.tls_name=a", "'tls_name' is given twice"),
        ("grpc://h:1?bootstrap_port=0", "'0' is no port from 1 to 65535"),
        ("grpc://h:1?bootstrap_port=65536", "no port from 1 to 65535"),
        ("grpc://h:1?label.bootstrap_port=8998x", "no port from 1 to 65535"),
        ("grpc://h:1?label.bootstrap_port=%C2%B2", "no port from 1 to 65535"),
        ("grpc://h:1?label.bootstrap_port=", "no port from 1 to 65535"),
        ("grpc://h:1?bootstrap_port=1&label.bootstrap_port=1", "'bootstrap_port' is given twice"),
        ("grpc://h:1?bootstrap_port=1&bootstrap_port=1", "'bootstrap_port' is given twice"),
        ("grpc://h:1?label.bootstrap_host=a/b", "no host name and no address"),
        ("grpc://h:1?label.bootstrap_host=", "no host name and no address"),
        ("grpc://h:1?role=decod", "did you mean 'decode'?"),
        ("grpc://h:1?contract=tgi", "known: sglang, vllm, trtllm, mlx, tokenspeed"),
        ("grpc://h:1?priority=-1", "no whole number from 0 to 1000"),
        ("grpc://h:1?priority=1001", "no whole number from 0 to 1000"),
        ("grpc://h:1?priority=5.0", "no whole number"),
        ("grpc://h:1?priority=%D9%A5", "no whole number"),
        ("grpc://h:1?cost=-0.1", "no number from 0 to 1e+06"),
        ("grpc://h:1?cost=nan", "no number"),
        ("grpc://h:1?cost=inf", "no number"),
        ("grpc://h:1?cost=cheap", "no number"),
        ("grpc://h:1?api_key=k", "'api_key' is unknown"),
        ("grpc://h:1?model=", "has no value"),
        ("grpc://h:1?model", "has no value"),
        ("grpc://h:1?model=a&model=b", "given twice"),
        ("grpc://h:1?m%6Fdel=a&model=b", "given twice"),
        ("grpc://h:1?model=a%0Ab", "printable"),
        ("grpc://h:1?model=%FF", "printable"),
        ("grpc://h:1?model=50%", "%25"),
        ("grpc://h:1?label.-=x", "no label name"),
        ("grpc://h:1?label.=x", "no label name"),
        (f"grpc://h:1?model={'m' * 257}", "at most 256"),
        (f"grpc://h:1?{'&'.join(f'label.k{i}=v' for i in range(33))}", "at most 32"),
        (f"grpc://h:1?model={'m' * 3000}", "longer than 2048"),
        ("grpc://h:1 ", "blank"),
        ("grpc://h\n:1", "control character"),
    ],
)
def test_a_wrong_url_is_the_callers_mistake_and_says_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(SmgError) as caught:
        parse_worker_url(text)
    assert hint in caught.value.message
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.code == "invalid_worker_url"


def test_a_worker_may_speak_http_or_be_asked_what_it_speaks() -> None:
    assert parse_worker_url("HTTP://h:1").endpoint == "http://h:1"
    assert parse_worker_url("https://h:1?model=m").scheme == "https"
    assert parse_worker_url("GRPCS://h:1").endpoint == "grpcs://h:1"
    plain = parse_worker_url("H:1?model=m")
    assert (plain.scheme, plain.endpoint, str(plain)) == ("", "h:1", "h:1?model=m")
    assert parse_worker_url(str(plain)) == plain


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://h:8000/v1", "http://h:8000"),
        ("HTTP://H:8000/v1/", "http://h:8000"),
        ("http://h:8000/v1?model=m", "http://h:8000"),
        ("http://h:8000/?model=m", "http://h:8000"),
        ("http://h/v1", "http://h:80"),
        ("http://h", "http://h:80"),
        ("https://api.example.org", "https://api.example.org:443"),
        ("https://api.example.org/v1", "https://api.example.org:443"),
        ("https://[2001:db8::1]/v1", "https://[2001:db8::1]:443"),
        ("http://10.0.0.7/", "http://10.0.0.7:80"),
    ],
)
def test_an_http_worker_is_written_as_clients_write_it(text: str, endpoint: str) -> None:
    url = parse_worker_url(text)
    assert url.endpoint == endpoint
    assert parse_worker_url(str(url)) == url


@pytest.mark.parametrize(
    "same",
    [
        ("grpc://h:1", "h:1", "GRPC://H:1/", "grpc://h.:1", "h:1?model=m"),
        ("grpc://localhost:1", "localhost:1", "127.0.0.1:1", "grpc://LOCALHOST.:1/"),
        ("http://h:80", "http://h", "http://h/v1", "HTTP://h:80/v1/"),
        ("https://h", "https://h:443"),
        ("http://localhost:9", "http://127.0.0.1:9/v1"),
        ("grpc://[2001:db8::1]:1", "[2001:DB8:0::1]:1"),
    ],
)
def test_all_spellings_of_an_address_are_one_worker(same: tuple[str, ...]) -> None:
    urls = [parse_worker_url(text) for text in same]
    assert len({url.identity for url in urls}) == 1
    assert {worker_id_of(url) for url in urls} == {worker_id_of(urls[0])}
    assert all(worker_id_of(url) in ids_named(text) for url, text in zip(urls, same, strict=True))


def test_other_addresses_are_other_workers() -> None:
    texts = ("grpc://h:1", "grpcs://h:1", "http://h:1", "https://h:1", "grpc://h:2", "grpc://i:1")
    assert len({worker_id_of(parse_worker_url(text)) for text in texts}) == len(texts)
    assert ids_named("w-0123456789ab") == ()


def test_the_name_that_a_certificate_is_for_is_a_label_with_a_shorter_name() -> None:
    for scheme in ("grpcs", "https"):
        url = parse_worker_url(f"{scheme}://10.0.0.7:443?tls_name=engine.internal")
        assert url.tls_name == "engine.internal"
        assert str(url).endswith("?label.tls_name=engine.internal")
        assert parse_worker_url(str(url)) == url
        assert url.identity == parse_worker_url(f"{scheme}://10.0.0.7:443").identity
    assert parse_worker_url("grpcs://h:1").tls_name == ""


def test_a_bootstrap_port_is_a_label_with_a_shorter_name() -> None:
    url = parse_worker_url("grpc://h:1?role=prefill&bootstrap_port=8998&label.a=b")
    assert dict(url.labels) == {"a": "b", "bootstrap_port": "8998"}
    assert (url.bootstrap_port, url.bootstrap_host) == (8998, "h")
    assert str(url) == "grpc://h:1?role=prefill&label.a=b&label.bootstrap_port=8998"
    assert parse_worker_url(str(url)) == url
    plain = parse_worker_url("grpc://h:1?label.bootstrap_host=[::1]")
    assert (plain.bootstrap_port, plain.bootstrap_host) == (None, "[::1]")


@pytest.mark.parametrize(
    ("words", "urls"),
    [
        ([], ()),
        (["a:1"], ("a:1",)),
        (["a:1", "8998"], ("a:1?bootstrap_port=8998",)),
        (["a:1?model=m", "8998", "b:1"], ("a:1?model=m&bootstrap_port=8998", "b:1")),
        (["a:1", "none", "b:1", "9", "c:1"], ("a:1", "b:1?bootstrap_port=9", "c:1")),
        (["a:1", "1", "2"], ("a:1?bootstrap_port=1", "2")),
        (["8998", "a:1"], ("8998", "a:1")),
        (["a:1", "none", "none"], ("a:1", "none")),
        (["a:1", "²"], ("a:1", "²")),
    ],
)
def test_a_port_after_a_url_is_its_bootstrap_port(words: list[str], urls: tuple[str, ...]) -> None:
    assert prefill_urls(words) == urls
    assert prefill_urls(urls[:1]) == urls[:1]


def test_a_url_is_given_a_role_that_it_does_not_deny() -> None:
    assert with_role(parse_worker_url("h:1"), "decode").role == "decode"
    assert with_role(parse_worker_url("h:1?role=decode"), "decode").role == "decode"
    with pytest.raises(SmgError, match="its role is decode, and it is given as prefill"):
        with_role(parse_worker_url("h:1?role=decode"), "prefill")


def test_a_password_in_a_url_is_refused_without_being_repeated() -> None:
    with pytest.raises(SmgError, match="must not carry a user name") as caught:
        parse_worker_url("grpc://me:hunter2@h:1")
    assert "hunter2" not in caught.value.message


def test_contracts_are_those_the_engines_speak() -> None:
    assert set(CONTRACTS) == {contract.value for contract in Contract}


def test_roles_are_those_that_engines_play() -> None:
    assert get_args(Role) == ROLES
    assert tuple(PARTS) == ROLES
    assert all(name == part for name, part in PARTS.items())


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40
)


@given(
    host=st.from_regex(r"[a-z][a-z0-9]{0,20}(\.[a-z]{1,5})?", fullmatch=True) | st.just("[::1]"),
    port=st.integers(1, 65535),
    role=st.sampled_from(ROLES),
    model=st.none() | _NAMES.filter(lambda name: "�" not in name),
    contract=st.none() | st.sampled_from(CONTRACTS),
    labels=st.dictionaries(
        st.from_regex(r"[a-z0-9]([a-z0-9._/-]{0,9}[a-z0-9])?", fullmatch=True).filter(
            lambda name: name not in PAIRING_LABELS
        ),
        _NAMES.filter(lambda name: "�" not in name),
        max_size=4,
    ),
    priority=st.integers(0, 1000),
    cost=st.floats(0, 1e6),
)
def test_every_url_that_can_be_said_comes_back(
    host: str,
    port: int,
    role: str,
    model: str | None,
    contract: str | None,
    labels: dict[str, str],
    priority: int,
    cost: float,
) -> None:
    said = {"role": role, "model": model, "contract": contract}
    said |= {"priority": str(priority), "cost": repr(cost)}
    said |= {f"label.{key}": value for key, value in labels.items()}
    query = "&".join(f"{quote(k)}={quote(v, safe='')}" for k, v in said.items() if v is not None)
    scheme = "http" if contract == "openai" else "grpc"
    url = parse_worker_url(f"{scheme}://{host}:{port}?{query}")
    assert (url.role, url.model, url.contract, dict(url.labels)) == (role, model, contract, labels)
    assert (url.priority, url.cost) == (priority, cost)
    assert parse_worker_url(str(url)) == url
    assert hash(parse_worker_url(str(url))) == hash(url)


@given(
    st.text(max_size=80)
    | st.text(alphabet="grpchttps:/?=&%@#[]. 0123456789abmodelr", max_size=80)
    | st.text(max_size=40).map(lambda tail: f"grpc://h:1?{tail}")
    | st.text(max_size=40).map(lambda tail: f"grpc://{tail}")
)
def test_any_text_is_a_worker_url_or_the_callers_mistake(text: str) -> None:
    found: WorkerUrl | SmgError
    try:
        found = parse_worker_url(text)
    except SmgError as error:
        found = error
    if isinstance(found, SmgError):
        assert found.kind is ErrorKind.INVALID_REQUEST
        assert "\n" not in found.message
    else:
        assert parse_worker_url(str(found)) == found
