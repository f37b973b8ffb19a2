"""A node with sources of every kind ends when it is told to, whatever they are in the middle of."""

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from support.processes.mesh_nodes import until
from support.processes.node import running_node

pytestmark = pytest.mark.integration
WAIT_S: Final = 60.0
NOWHERE: Final = "10.255.255.1"
"""Packets to it come to nothing."""


@contextmanager
def hung_file(path: Path) -> Iterator[list[int]]:
    """Make a file whose reader waits for ever; whoever reads it is held once the list is not empty."""
    os.mkfifo(path)
    held: list[int] = []
    try:
        yield held
    finally:
        for writer in held:
            os.close(writer)


def a_reader_is_held(path: Path, held: list[int]) -> bool:
    """Whether somebody reads; he does from now on."""
    try:
        held.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True


def test_a_node_ends_although_a_file_hangs(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    flags = (
        *("--discovery.kubernetes.chat.selector", "app=vllm"),
        *("--discovery.kubeconfig", str(path)),
    )
    with hung_file(path) as held, running_node(tmp_path, flags=flags) as node:
        until(lambda: a_reader_is_held(path, held), "reading it")
        node.process.signal(signal.SIGTERM)
        assert node.process.wait(WAIT_S) == 0
        assert "left behind" not in node.process.said()
        assert "Traceback" not in node.process.said()


def test_a_node_ends_in_the_middle_of_every_question(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    program = tmp_path / "list"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nsleep 3600\n")
    program.chmod(0o755)
    flags = (
        *("--discovery.command", str(program)),
        *("--discovery.dns.a.name", "_grpc._tcp.vllm.example"),
        *("--discovery.dns.a.servers", f"{NOWHERE}:53"),
        *("--discovery.kubernetes.chat.selector", "app=vllm"),
        *("--discovery.kubeconfig", str(kubeconfig(tmp_path))),
    )
    with running_node(tmp_path, flags=flags) as node:
        until(begun.exists, "running the program")
        node.process.signal(signal.SIGTERM)
        assert node.process.wait(WAIT_S) == 0
        assert "left behind" not in node.process.said()


def kubeconfig(folder: Path) -> Path:
    """Write a file that leads to nowhere; return its path."""
    path = folder / "nowhere"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        f" clusters: [{{name: c, cluster: {{server: 'http://{NOWHERE}:6443'}}}}],"
        " users: [{name: u, user: {token: t}}]}"
    )
    return path
