"""The memory of verified tokens: found until they expire, by the version that verified them, and not without end."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.identity import Identity
from smg_node.access.tokens.verified_tokens import SECRET_BYTES, VerifiedTokens

SECRET = b"s" * SECRET_BYTES


def who(name: str = "a", expires_ms: int = 100) -> Identity:
    return Identity(name, "acme", "user", expires_ms)


def test_a_token_is_found_until_it_expires() -> None:
    memory = VerifiedTokens(SECRET)
    assert memory.find("token", 0, 0) is None
    memory.add("token", 0, who())
    assert memory.find("token", 0, 99) == who()
    assert memory.find("Token", 0, 99) is None
    assert memory.find("token", 0, 100) is None
    assert len(memory) == 0


def test_another_version_finds_nothing_and_begins_anew() -> None:
    memory = VerifiedTokens(SECRET)
    memory.add("one", 1, who("one"))
    assert memory.find("one", 2, 0) is None
    memory.add("two", 2, who("two"))
    assert memory.find("two", 2, 0) == who("two")
    assert memory.find("one", 2, 0) is None
    assert memory.find("one", 1, 0) is None
    assert len(memory) == 1


def test_the_oldest_goes_when_it_is_full() -> None:
    memory = VerifiedTokens(SECRET, entries_max=2)
    for name in ("one", "two", "three"):
        memory.add(name, 0, who(name))
    assert len(memory) == 2
    assert memory.find("one", 0, 0) is None
    assert memory.find("three", 0, 0) == who("three")


def test_nothing_of_a_token_is_kept() -> None:
    memory, other = VerifiedTokens(SECRET), VerifiedTokens(b"o" * SECRET_BYTES)
    for one in (memory, other):
        one.add("eyJ.secret.token", 0, who())
    (kept,), (elsewhere,) = memory._identities, other._identities
    assert kept != elsewhere
    assert b"secret" not in kept
    assert len(kept) == 16


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 9)), max_size=40))
def test_it_never_says_more_than_it_was_told(steps: list[tuple[int, int, int]]) -> None:
    memory = VerifiedTokens(SECRET, entries_max=3)
    told: dict[tuple[str, int], Identity] = {}
    for name, version, expires_ms in steps:
        token = f"token{name}"
        found = memory.find(token, version, expires_ms - 1)
        if found is not None:
            assert found == told[token, version]
            assert found.expires_ms >= expires_ms
        memory.add(token, version, who(token, expires_ms))
        told[token, version] = who(token, expires_ms)
        assert len(memory) <= 3
