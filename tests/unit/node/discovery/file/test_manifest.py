import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.file.manifest import ManifestError, read_manifest


def urls(raw: bytes | str) -> list[str]:
    text = raw.encode() if isinstance(raw, str) else raw
    return [str(one.url) for one in read_manifest(text).sightings.values()]


def refusal(raw: bytes | str) -> str:
    with pytest.raises(ManifestError) as caught:
        read_manifest(raw.encode() if isinstance(raw, str) else raw)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ('["grpc://a:1?priority=60", "b:2"]', ["grpc://a:1?priority=60", "b:2"]),
        ('{"workers": ["grpc://a:1"]}', ["grpc://a:1"]),
        ('{"version": 1, "workers": []}', []),
        ("[]", []),
        ("[grpc://a:1, 'b:2']", ["grpc://a:1", "b:2"]),  # YAML that closes what it opens
        ("- grpc://a:1\n- b:2\n", ["grpc://a:1", "b:2"]),
        ("workers:\n- grpc://a:1\n", ["grpc://a:1"]),
        ("version: 1\nworkers:\n- {id: a, url: grpc://a:1}\n", ["grpc://a:1"]),
        ("\ufeff[]", []),
        ('["a:1", "a:1"]', ["a:1"]),
        ('[{"url": "http://a:8000/v1", "id": null}]', ["http://a:8000"]),
    ],
)
def test_lists_of_urls_and_manifests_are_read(text: str, listed: list[str]) -> None:
    assert urls(text) == listed


def test_a_manifest_says_all_that_a_worker_url_can_of_pairs() -> None:
    row = {
        "id": "p0",
        "url": "http://10.0.0.9:8000",
        "worker_type": "prefill",
        "bootstrap_port": 8998,
        "model_id": "m",
        "kv_connector": "NixlConnector",
        "kv_role": "kv_producer",
        "kv_engine_id": "e1",
    }
    manifest = read_manifest(json.dumps({"version": 1, "workers": [row]}).encode())
    (one,) = manifest.sightings.values()
    assert (one.endpoint, one.instance, one.origin) == ("10.0.0.9:8000", "p0", "worker p0")
    assert (one.url.role, one.url.model, one.url.bootstrap_port) == ("prefill", "m", 8998)
    assert dict(one.url.labels) == {
        "bootstrap_port": "8998",
        "kv_connector": "NixlConnector",
        "kv_engine_id": "e1",
        "kv_role": "kv_producer",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("# none\n", "it holds nothing"),
        ('["a:1",\n "b"]', "line 2: workers[1]: worker URL 'b'"),
        ('["a:1"', "line 1: it ends too early"),
        ('["a:1"\n,\n"b:', "line 3: it ends too early"),
        ('["a:1"] x', "line 1: it is not JSON: extra data (column 9)"),
        ('{"version": 2, "workers": []}', "line 1: version: it is the number 2"),
        ('{"version": true, "workers": []}', "version: it is true"),
        ('{"version": 1}', "workers is missing"),
        (
            '{"version": 1,\n"worker": []}',
            "line 2: worker: the field is unknown; did you mean 'workers'",
        ),
        ('{"workers": 3}', "workers: it must be a list, and is the number 3"),
        ("3", "it must be a list of workers, and is the number 3"),
        ('{"workers": [\n{"url": "a:1",\n "x": 1}]}', "line 3: workers[0].x: the field is unknown"),
        ('[{"url": 5}]', "line 1: workers[0].url: it must be text"),
        ('[{"id": "a"}]', "workers[0]: url is missing"),
        ('[{"url": "a:1", "id": ""}]', "workers[0].id: it must not be empty"),
        ('[{"url": "a:1", "id": 5}]', "workers[0].id: it must be text, and is the number 5"),
        ('[{"url": "a:1", "worker_type": "Prefill"}]', "did you mean 'prefill'"),
        ('[{"url": "a:1", "bootstrap_port": 8998}]', "only workers for prefill and encode"),
        (
            '[{"url": "a:1", "worker_type": "prefill", "bootstrap_port": 0}]',
            "a port from 1 to 65535, and is the number 0",
        ),
        (
            '[{"url": "a:1", "worker_type": "prefill", "bootstrap_port": "1"}]',
            "and is the text '1'",
        ),
        ('[{"id": "a", "url": "a:1"},\n{"id": "a", "url": "b:1"}]', "line 2: workers[1].id"),
        ('[{"id": "a", "url": "a:1"},\n{"id": "b", "url": "grpc://a:1"}]', "have one address, a:1"),
        ('["localhost:1", "grpc://127.0.0.1:1"]', "have one address"),
        ('["a:1", "a:1?priority=3"]', "workers 0 and 1 have one address"),
        ('[{"url": "a:1", "url": "b:1"}]', "the key 'url' stands twice"),
        ("- url: a:1\n  url: b:1\n", "line 2: the key 'url' stands twice"),
        ("- a:1\n- b\n", "line 2: workers[1]: worker URL 'b'"),
        ("a: [", "it is not YAML"),
        ("- &x a:1\n- *x\n", "anchors are not understood"),
        ("- a:1\n---\n- b:1\n", "it is not YAML"),
        ("[" * 5000, "nested too deeply"),
        ("- " * 5000, "nested too deeply"),
        ("[NaN]", "NaN is no number"),
        ("- !!python/object:os.system {}\n", "it is not YAML"),
        ("- 99999999999999999999-01-01\n", "workers[0]: worker URL"),
        ("- 1\n", "it must be a worker URL or an object"),
        ('["a:1", "http://user:secret@b:1"]', "must not carry a user name or password"),
    ],
)
def test_what_lists_no_workers_is_refused_with_its_line_and_field(text: str, said: str) -> None:
    assert said in refusal(text)


def test_no_message_repeats_a_password() -> None:
    assert "secret" not in refusal('["http://user:secret@b:1"]')


def test_what_is_no_text_or_too_large_is_refused() -> None:
    assert refusal(b"- a:1\n- \xff\n") == "line 2: it is not UTF-8 text"
    assert "larger than 16 MiB" in refusal(b"[" + b" " * (16 << 20))
    assert "larger than 2 MiB" in refusal(b"- a:1\n" + b"#" * (2 << 20))
    many = json.dumps([f"10.0.{one >> 8}.{one & 255}:1" for one in range(16_385)])
    assert "it lists 16385 workers" in refusal(many)


def test_lines_are_found_in_json_of_any_form() -> None:
    text = '{\n "workers" : [\n\n {"id":\t"\\"]}",\n"url": "a:1"}, \n{"url"\n:\n"nothing"}\n]}'
    assert refusal(text).startswith("line 8: workers[1].url: worker URL 'nothing'")


@settings(max_examples=400)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_that_error(raw: bytes) -> None:
    try:
        manifest = read_manifest(raw)
    except ManifestError as error:
        said = str(error)
    else:
        said = "read"
        assert all(name == one.endpoint for name, one in manifest.sightings.items())
    assert said
    assert said.isprintable()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["version", "workers", "url", "id", "worker_type", "bootstrap_port"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_is_a_manifest_or_that_error(value: Any) -> None:
    for raw in (json.dumps(value), json.dumps(value, indent=1)):
        try:
            listed = read_manifest(raw.encode())
        except ManifestError:
            continue
        for one in listed.sightings.values():
            assert parse_worker_url(str(one.url)) == one.url


WHOLE = (
    '[\n "grpc://10.0.0.1:50051?label.zone=a",\n'
    ' {"id": "b", "url": "http://b.example:80/v1"},\n "c:50051"\n]\n'
)


@pytest.mark.parametrize("text", [WHOLE, '{"version": 1, "workers": ' + WHOLE.strip() + "}"])
def test_no_part_of_a_json_text_is_taken_for_a_list(text: str) -> None:
    whole = urls(text)
    assert len(whole) == 3
    for end in range(len(text)):
        try:
            manifest = read_manifest(text[:end].encode())
        except ManifestError:
            continue
        assert not text[end:].strip(), text[:end]
        assert manifest.closed


def test_a_yaml_list_may_go_on_unless_it_says_that_it_ends() -> None:
    assert not read_manifest(b"- a:1\n").closed
    assert read_manifest(b"- a:1\n...\n").closed
    assert read_manifest(b"[a:1]").closed
