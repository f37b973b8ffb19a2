"""A client's own key on a request: what is one, and what tells requests apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.request.idempotency_key import (
    DIGEST_BYTES,
    KEY_CHARACTERS_MAX,
    idempotency_key,
)

printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)


def key_of(
    spelled: str = "k", *, method: str = "POST", path: str = "/v1/responses", body: bytes = b"{}"
) -> tuple[str, bytes]:
    asked = idempotency_key(spelled, method=method, path=path, body=body)
    assert len(asked.digest) == DIGEST_BYTES
    return asked.key, asked.digest


@given(printable)
def test_anything_that_can_be_printed_is_a_key(spelled: str) -> None:
    cut = spelled[:KEY_CHARACTERS_MAX]
    assert key_of(cut)[0] == cut


@pytest.mark.parametrize("spelled", ["", "x" * 129, "a\tb", "ü", "\udc80", "a\x7f"])
def test_what_is_no_key_is_refused(spelled: str) -> None:
    with pytest.raises(SmgError) as found:
        key_of(spelled)
    assert (found.value.status, found.value.code) == (400, "invalid_idempotency_key")
    assert "1 to 128 printable" in found.value.message


def test_the_same_request_has_the_same_digest_and_any_other_has_another() -> None:
    digests = [
        key_of()[1],
        key_of(body=b"{ }")[1],
        key_of(method="PUT")[1],
        key_of(path="/v1/responses/")[1],
        # Neither may be taken for a part of the other.
        key_of(path="/v1/response", body=b"s{}")[1],
    ]
    assert len(set(digests)) == len(digests)
    assert key_of()[1] == digests[0]
    assert key_of("another key")[1] == digests[0]


def test_a_client_cannot_take_the_keys_of_approvals() -> None:
    with pytest.raises(SmgError) as found:
        idempotency_key("mcpa:mcpr_1", method="POST", path="/v1/responses", body=b"{}")
    assert (found.value.status, found.value.code) == (400, "invalid_idempotency_key")
