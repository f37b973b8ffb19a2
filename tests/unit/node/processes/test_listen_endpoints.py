import errno
import os
import socket
from pathlib import Path

import pytest

from smg_node.config.address import Address
from smg_node.processes.listen_endpoints import listen_endpoints


def test_a_port_that_the_system_chose_is_held_for_all_processes(tmp_path: Path) -> None:
    with listen_endpoints(tmp_path, "n1", Address("127.0.0.1", 0)) as place:
        assert place.address.port > 0
        with socket.socket() as one, socket.socket() as other, socket.socket() as stranger:
            for shared in (one, other):
                shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                shared.bind(("127.0.0.1", place.address.port))
                shared.listen()
            with pytest.raises(OSError, match="in use"):
                stranger.bind(("127.0.0.1", place.address.port))


def test_a_port_that_somebody_listens_on_is_refused_even_if_it_could_be_shared(
    tmp_path: Path,
) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = Address("127.0.0.1", other.getsockname()[1])
        with (
            pytest.raises(OSError, match="error while attempting to bind on address") as caught,
            listen_endpoints(tmp_path, "n1", address),
        ):
            pass
        assert caught.value.errno == errno.EADDRINUSE


def test_sockets_have_names_that_the_system_takes_wherever_the_data_lies(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with listen_endpoints(deep, "n1", Address("127.0.0.1", 0)) as place:
        assert len(place.control) < 108
        assert place.folder.stat().st_mode & 0o777 == 0o700
        folder = place.folder
    assert not folder.exists()
    with listen_endpoints(tmp_path, "n" * 10, Address("127.0.0.1", 0)) as place:
        assert place.folder.exists()


def test_a_process_forked_inside_leaves_the_folder_to_the_others(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    context = listen_endpoints(deep, "n1", Address("127.0.0.1", 0))
    place = context.__enter__()
    pid = os.fork()
    if pid == 0:
        try:
            context.__exit__(None, None, None)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert place.folder.exists()
    context.__exit__(None, None, None)
    assert not place.folder.exists()


def test_two_nodes_of_one_name_and_data_dir_have_folders_of_their_own(tmp_path: Path) -> None:
    any_port = Address("127.0.0.1", 0)
    with listen_endpoints(tmp_path, "n1", any_port) as first:
        with listen_endpoints(tmp_path, "n1", any_port) as second:
            assert second.folder != first.folder
            assert second.folder.is_dir()
        assert not second.folder.exists(), "a passing one"
        with listen_endpoints(tmp_path, "n2", any_port) as other:
            assert other.folder.is_relative_to(tmp_path)
    with listen_endpoints(tmp_path, "n1", any_port) as again:
        assert again.folder == first.folder


def test_a_folder_belongs_to_a_node_until_its_last_process_has_ended(tmp_path: Path) -> None:
    any_port = Address("127.0.0.1", 0)
    reads, writes = os.pipe()
    with listen_endpoints(tmp_path, "n1", any_port) as first:
        child = os.fork()
        if child == 0:
            os.close(writes)
            os.read(reads, 1)
            os._exit(0)
    with listen_endpoints(tmp_path, "n1", any_port) as second:
        assert second.folder != first.folder, "an orphan still uses it"
    os.close(writes)
    os.close(reads)
    assert os.waitpid(child, 0)[1] == 0
    with listen_endpoints(tmp_path, "n1", any_port) as third:
        assert third.folder == first.folder
