import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from smg_storage.ids import thread_of
from smg_storage.redis.keys import Keys, person_member, run_of
from smg_storage.url import StoreUrlError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=64)
THREAD = "5eed5eed5eed"


@given(tenant=TEXT)
def test_a_thread_lies_in_the_slot_of_its_tag_whatever_the_tenant_is_called(tenant: str) -> None:
    key = Keys("smg").slot(tenant, THREAD)
    assert key_slot(key.encode()) == key_slot(THREAD.encode())
    assert key_slot(f"{key}:conv:conv_}}{{x".encode()) == key_slot(THREAD.encode())


@given(one=TEXT, other=TEXT)
def test_two_tenants_share_no_key(one: str, other: str) -> None:
    keys = Keys("smg")
    bases = keys.base(one), keys.base(other)
    assert (one == other) is (bases[0] == bases[1])
    assert one == other or not bases[0].startswith(bases[1])
    assert (keys.person(one, "p") == keys.person(other, "p")) is (one == other)
    assert (keys.idempotency(one, "k") == keys.idempotency(other, "k")) is (one == other)


@given(identifier=TEXT)
def test_a_person_is_not_named_in_a_key(identifier: str) -> None:
    key = Keys("smg").person("-", identifier)
    assert key.startswith("smg:-:safety:")
    assert len(key) == len("smg:-:safety:") + 32


@given(tenant=TEXT)
def test_a_run_is_found_again_by_its_name(tenant: str) -> None:
    assert run_of(Keys("smg").run(tenant, "resp_1")) == (tenant, "resp_1")


def test_members_of_a_list_sort_as_their_ids_do() -> None:
    ids = ["a", "a-", "a.b", "a1", "a:b", "aB", "a_b", "ab", "b"]
    assert sorted(ids) == ids
    assert sorted(map(person_member, ids)) == [person_member(one) for one in ids]
    assert person_member("a") == f"a {thread_of('a')}"


@given(tenant=TEXT)
def test_what_has_to_be_swept_is_known_by_its_key(tenant: str) -> None:
    keys = Keys("smg")
    trash = f"{keys.slot(tenant, THREAD)}:trash:conv_1"
    assert keys.swept(trash) == (tenant, "trash", "conv_1")
    items = f"{keys.slot(tenant, THREAD)}:items:conv_1"
    assert keys.swept(items) == (tenant, "items", "conv_1")
    person = keys.person(tenant, "p")
    assert keys.swept(person) == (tenant, "safety", person.rpartition(":")[2])


@pytest.mark.parametrize(
    "key",
    ["", "smg", "smg:runs", "smg:-:{5eed5eed5eed}:refs:msg_1", "smgs:-:safety:00", "other:1"],
)
def test_nothing_else_is_swept(key: str) -> None:
    assert Keys("smg").swept(key) is None


@pytest.mark.parametrize("prefix", ["", "a{b}", "a b", "ä", "a" * 65, "a\n"])
def test_a_prefix_that_would_change_slots_is_refused(prefix: str) -> None:
    with pytest.raises(StoreUrlError):
        Keys(prefix)
