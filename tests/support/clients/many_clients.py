"""Clients of three nodes that ask one thing after the other, all at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio
from support.processes.node_api import Answer, call

BETWEEN_S = 0.1


@dataclass
class Offered:
    """Answers to one client of one node."""

    node: MeshNode
    model: str
    answers: list[Answer] = field(default_factory=list)

    def ask(self, over: threading.Event) -> None:
        body = {"model": self.model, "messages": [{"role": "user", "content": "words=2"}]}
        while not over.wait(BETWEEN_S):
            self.answers.append(call(self.node, "POST", "/v1/chat/completions", body))


@contextmanager
def clients(trio: Trio, each: int, model: str) -> Iterator[list[Offered]]:
    """Let so many clients of each node ask meanwhile; yield what they are answered."""
    over = threading.Event()
    offered = [Offered(node, model) for node in trio.living for _ in range(each)]
    threads = [threading.Thread(target=one.ask, args=(over,)) for one in offered]
    for thread in threads:
        thread.start()
    try:
        yield offered
    finally:
        over.set()
        for thread in threads:
            thread.join()
