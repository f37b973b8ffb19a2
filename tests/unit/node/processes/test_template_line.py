import os
import socket
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.processes.template_line import Birth, Template, read_birth, template_pair


def test_a_birth_arrives_with_the_line_of_the_new_process() -> None:
    ours, theirs = template_pair()
    new, kept = socket.socketpair()
    birth = Birth(3, ("1-10", "2-11"), "signal 9")
    heard: list[Birth] = []

    def answer() -> None:
        content, lines, _, _ = socket.recv_fds(theirs, 4096, 1)
        heard.append(read_birth(content))
        os.write(lines[0], b"hello")
        os.close(lines[0])
        theirs.send(b"4711")

    answering = threading.Thread(target=answer)
    answering.start()
    with ours, theirs, new, kept:
        assert Template(os.getpid(), ours, ["a"]).fork(birth, new) == 4711
        answering.join()
        assert heard == [birth]
        assert kept.recv(16) == b"hello"


@pytest.mark.parametrize("said", [b"", b"no number", b"-1"])
def test_a_template_that_says_anything_but_an_id_has_forked_nothing(said: bytes) -> None:
    ours, theirs = template_pair()
    new, kept = socket.socketpair()
    with ours, new, kept:
        theirs.send(said)
        theirs.close()
        assert Template(os.getpid(), ours, []).fork(Birth(1, (), ""), new) is None


def test_a_template_is_ready_when_it_says_so_and_not_when_it_has_ended() -> None:
    for said, ready in ((b"ready", True), (b"else", False), (None, False)):
        ours, theirs = template_pair()
        with ours:
            if said is not None:
                theirs.send(said)
            theirs.close()
            template = Template(os.getpid(), ours, [])
            template.hear()
            assert template.ready is ready


@given(st.binary(max_size=200))
def test_any_bytes_are_a_birth_or_an_error_of_the_format(content: bytes) -> None:
    try:
        read_birth(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
