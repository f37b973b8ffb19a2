import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_spec import (
    Credentials,
    ModelSpec,
    ProviderSecrets,
    ProviderSpec,
    read_secrets,
    read_spec,
    write_secrets,
    write_spec,
)
from smg_node.providers.secret import Secret


class Sources:
    """Two files and one variable."""

    def file(self, path: str) -> str:
        if path == "/bytes":
            b"\xff".decode()
        return {"/key": " sk-1\n", "/empty": "\n"}[path] if path != "/gone" else self._gone()

    def _gone(self) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    def env(self, name: str) -> str | None:
        return {"KEY": "sk-2"}.get(name)


@pytest.mark.parametrize(
    ("spelled", "value"), [("file:/key", "sk-1"), ("env:KEY", "sk-2"), ("sk-3", "sk-3")]
)
def test_a_secret_is_read_where_it_is(spelled: str, value: str) -> None:
    assert Secret(spelled).read(Sources()) == value


@pytest.mark.parametrize(
    ("spelled", "why"),
    [
        ("file:/gone", "file:/gone cannot be read: No such file or directory"),
        ("file:/bytes", "file:/bytes cannot be read: it holds no text"),
        ("file:/empty", "file:/empty is empty"),
        ("env:NONE", "NONE is not set"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(spelled: str, why: str) -> None:
    with pytest.raises(SmgError) as caught:
        Secret(spelled).read(Sources())
    assert caught.value.message == f"a secret of a provider: {why}"
    assert caught.value.code == "provider_secret"


def test_a_secret_is_never_printed() -> None:
    secrets = ProviderSecrets((Secret("sk-hidden"), Secret("env:KEY")), {"x": Secret("hidden")})
    shown = f"{secrets} {secrets!r} {secrets.keys[0]} {secrets.keys[0]!s}"
    assert "hidden" not in shown
    assert "env:KEY" in shown


def test_a_document_has_one_spelling() -> None:
    spec = ProviderSpec(
        "a",
        "bedrock",
        region="eu-central-1",
        credentials=Credentials("aws", source="instance"),
        labels={"zone": "eu", "a": "b"},
        models=(ModelSpec("m", ("converse",), 5, ("q",)), ModelSpec("n")),
        client_keys=True,
    )
    document = write_spec(spec)
    assert document == (
        b'{"client_keys":true,"credentials":{"kind":"aws","source":"instance"},"kind":"bedrock",'
        b'"labels":{"a":"b","zone":"eu"},"models":[{"dialects":["converse"],"model":"m",'
        b'"output_max":5,"quirks":["q"]},{"model":"n"}],"name":"a","region":"eu-central-1"}'
    )
    assert read_spec(document) == spec


def test_what_a_newer_release_says_is_passed_on() -> None:
    document = {
        "name": "a",
        "kind": "quantum",
        "qubits": [1, {"x": None}],
        "credentials": {"kind": "aws", "ring": "z"},
        "timeouts": {"first_event_s": 9, "dns_s": 1},
        "models": [{"model": "m", "colour": "red"}],
    }
    spec = read_spec(json.dumps(document).encode())
    assert spec.hosting is None
    assert spec.strange == {"qubits": [1, {"x": None}]}
    assert spec.models[0].strange == {"colour": "red"}
    assert json.loads(write_spec(spec)) == document


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda name: name not in ProviderSpec.__struct_fields__),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
        max_size=3,
    ),
    st.sampled_from(["credentials", "timeouts", None]),
)
def test_any_strange_field_survives_any_number_of_nodes(said: Any, place: str | None) -> None:
    said = {key: value for key, value in said.items() if key not in Credentials.__struct_fields__}
    said = {key: value for key, value in said.items() if not key.endswith("_s")}
    document: dict[str, Any] = {"name": "a", "kind": "openai"}
    if place is None:
        document |= said
    elif said:
        document[place] = said
    once = write_spec(read_spec(json.dumps(document).encode()))
    assert json.loads(once) == document
    assert write_spec(read_spec(once)) == once


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{",
        b'{"name":3,"kind":"x"}',
        b'{"name":"a"}',
        b'{"name":"a","kind":"x","credentials":[]}',
        b'{"name":"a","kind":"x","models":{}}',
        b'{"name":"a","kind":"x","models":3}',
        b'{"name":"a","kind":"x","labels":[1]}',
        b'{"name":"a","kind":"\xff"}',
    ],
)
def test_a_document_that_cannot_be_read_is_said_to_be_so(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_spec(document)


def test_secrets_are_written_apart() -> None:
    found = parse_provider(
        "a",
        {
            "kind": "azure",
            "resource": "acme",
            "credentials": {
                "kind": "entra",
                "tenant": "t",
                "client_id": "c",
                "client_secret": "hidden",
            },
        },
    )
    assert b"hidden" not in write_spec(found.spec)
    assert read_spec(write_spec(found.spec)) == found.spec
    written = write_secrets(found.secrets)
    assert written == b'{"keys":[],"named":{"client_secret":"hidden"}}'
    assert read_secrets(written) == found.secrets
    assert found.spec.accounts == ("acme", "t", "c")


@pytest.mark.parametrize(
    "opened", [b"", b'{"keys":["hidden",3]}', b"\xff", b'{"named":["hidden"]}']
)
def test_opened_bytes_that_are_no_secrets_are_not_repeated(opened: bytes) -> None:
    with pytest.raises(ValueError, match="no secrets of a provider") as caught:
        read_secrets(opened)
    assert "hidden" not in str(caught.value)


def test_what_is_said_of_prompt_caches_is_written_only_where_it_is_said() -> None:
    spec = ProviderSpec(
        "a",
        "openai",
        models=(ModelSpec("m", cache_min_tokens=64),),
        cache_scope="key",
        cache_key_added=True,
    )
    document = write_spec(spec)
    assert document == (
        b'{"cache_key_added":true,"cache_scope":"key","kind":"openai",'
        b'"models":[{"cache_min_tokens":64,"model":"m"}],"name":"a"}'
    )
    assert read_spec(document) == spec
    assert b"cache" not in write_spec(ProviderSpec("a", "openai", models=(ModelSpec("m"),)))
