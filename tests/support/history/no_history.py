"""A node whose test asks for no history."""

from collections.abc import Callable

from smg_node.http.ports.history import History
from smg_node.pipeline.generation.run_interface import Generations

MakeHistory = Callable[[Generations], History]


def no_history(_generations: Generations) -> History:
    raise AssertionError("this test asks for no history")
