import base64

import pytest

from smg_node.history.context.sealed_content import opened, sealer
from support.history.history_world import PlainVault


def test_what_was_sealed_for_a_tenant_and_a_model_is_opened_for_them() -> None:
    blob = sealer(PlainVault(), tenant="a", model="m")("I think so\n☂")
    assert opened(PlainVault(), [blob], tenant="a", model="m") == {blob: "I think so\n☂"}


def test_it_is_not_opened_for_anybody_else() -> None:
    blob = sealer(PlainVault(), tenant="a", model="m")("secret")
    assert opened(PlainVault(), [blob], tenant="b", model="m") == {}


def test_another_model_of_the_tenant_gets_nothing_of_it_and_that_is_no_error() -> None:
    blob = sealer(PlainVault(), tenant="a", model="m")("secret")
    assert opened(PlainVault(), [blob], tenant="a", model="n") == {blob: ""}


def test_it_is_not_opened_with_another_key() -> None:
    blob = sealer(PlainVault(b"k"), tenant="a", model="m")("secret")
    assert opened(PlainVault(b"l"), [blob], tenant="a", model="m") == {}


def test_other_secrets_of_the_cluster_cannot_be_read_through_it() -> None:
    sealed = base64.urlsafe_b64encode(PlainVault().seal("the key of a worker")).decode()
    assert opened(PlainVault(), [f"smg1.{sealed}"], tenant="a", model="m") == {}


@pytest.mark.parametrize(
    "blob", ["", "gAAAA", "smg1.", "smg1.%%%", "smg1.é", "smg1.aw", "smg1.azE=", "smg1.a3si"]
)
def test_garbage_opens_to_nothing(blob: str) -> None:
    assert opened(PlainVault(), [blob], tenant="a", model="m") == {}
