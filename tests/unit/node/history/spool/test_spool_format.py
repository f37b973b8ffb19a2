from hypothesis import given
from hypothesis import strategies as st

from smg_node.history.spool import spool_format as form
from support.history.spools import ACCESS, turn

SALT = bytes(range(16))
BODIES = [b"", b"one", b"TURN" * 5, bytes(300)]


def file_of(bodies: list[bytes], salt: bytes = SALT) -> bytes:
    return form.header(salt) + b"".join(form.frame(body, salt) for body in bodies)


def read(content: bytes) -> tuple[list[bytes], int]:
    found = form.frames_of(content)
    return [content[one.start : one.end] for one in found.frames], found.broken


def test_what_was_written_is_read_again() -> None:
    assert read(file_of(BODIES)) == (BODIES, 0)
    assert read(file_of([])) == ([], 0)


def test_a_turn_is_the_same_afterwards() -> None:
    one = form.spooled(ACCESS, turn(3, 2), now_us=7)
    again = form.decode(form.encode(one))
    assert again == one
    assert again.access(ACCESS.timeout_s) == ACCESS


def test_a_file_that_is_torn_at_any_byte_has_all_that_was_whole() -> None:
    content = file_of(BODIES)
    ends = [len(file_of(BODIES[:count])) for count in range(len(BODIES) + 1)]
    for length in range(len(content)):
        whole = sum(end <= length for end in ends) - 1
        assert read(content[:length]) == (BODIES[: max(whole, 0)], 0), length


def test_a_byte_that_is_wrong_costs_its_own_turn_only() -> None:
    content = file_of(BODIES)
    for at in range(form.HEADER_BYTES, len(content)):
        broken = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        lost = next(
            number for number in range(len(BODIES)) if at < len(file_of(BODIES[: number + 1]))
        )
        left, damage = read(broken)
        assert left == BODIES[:lost] + BODIES[lost + 1 :], at
        assert damage == (lost < len(BODIES) - 1)


def test_a_frame_in_somebodys_text_is_none() -> None:
    inner = form.frame(b"not a turn", bytes(16))
    content = file_of([inner, b"after"])
    # The frame around it is broken, so that its inside is looked through.
    broken = bytearray(content)
    broken[form.HEADER_BYTES + 5] ^= 1
    assert read(bytes(broken)) == ([b"after"], 1)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_file_of_nothing(content: bytes) -> None:
    assert read(content) == ([], 0)


@given(st.lists(st.binary(max_size=40), max_size=6), st.binary(max_size=30))
def test_garbage_at_the_end_changes_nothing(bodies: list[bytes], garbage: bytes) -> None:
    assert read(file_of(bodies) + garbage) == (bodies, 0)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_turn_or_a_value_error(body: bytes) -> None:
    try:
        form.decode(body)
    except ValueError:
        return
    raise AssertionError("so few bytes cannot be a turn")
