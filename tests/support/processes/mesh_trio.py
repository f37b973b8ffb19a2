"""Three real nodes that are started, killed and started again by tests that share them."""

import shutil
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.processes.mesh_nodes import WAIT_S, MeshNode, flags_of, make_key, mesh_node, until
from support.processes.node_api import same_everywhere
from support.processes.previous_release import CURRENT, Release

NAMES = ("a", "b", "c")


@dataclass
class Trio:
    """Members of one mesh by name, as far as they live. What they said in earlier lives is in `said`."""

    folder: Path
    key: Path
    flags: Sequence[str] = ()
    nodes: dict[str, MeshNode] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    _stacks: dict[str, ExitStack] = field(default_factory=dict)

    def __getitem__(self, name: str) -> MeshNode:
        """Return a node that lives."""
        return self.nodes[name]

    @property
    def living(self) -> list[MeshNode]:
        """Those that live, by name."""
        return [self.nodes[name] for name in sorted(self.nodes)]

    def data_dir(self, name: str) -> Path:
        """Return where a node keeps what it keeps."""
        return self.folder / name / "data"

    def start(self, name: str, *flags: str, release: Release = CURRENT) -> MeshNode:
        """Start a node, joining through all that live; return when its API answers."""
        join = [node.mesh for node in self.living]
        stack = self._stacks[name] = ExitStack()
        given = [*flags_of(name, key=self.key, join=join), *self.flags, *flags]
        self.nodes[name] = stack.enter_context(
            mesh_node(self.folder / name, given, release=release)
        )
        return self.nodes[name]

    def kill(self, name: str, *, others_know: bool = True) -> None:
        """End a node at once, and return when the others know; or just at once."""
        self._end(name, signal.SIGKILL)
        if others_know:
            for node in self.living:
                node.awaits_states(**{name: "dead"})

    def stop(self, name: str) -> int:
        """Tell a node to end; return how it did when the others know."""
        code = self._end(name, signal.SIGTERM)
        for node in self.living:
            node.awaits_states(**{name: "left"})
        return code

    def lose_disk(self, name: str) -> None:
        """Take away everything that a node which does not live has kept."""
        shutil.rmtree(self.data_dir(name))

    def all_agree(self, *, besides: Collection[str] = ()) -> None:
        """Return when all see each other, and hold and run the same; kinds of state `besides` are left out."""
        for node in self.living:
            node.awaits_states(**dict.fromkeys(self.nodes, "alive"))
        until(lambda: same_everywhere(self.living, besides=besides), "agreeing")

    def on_all(self, true: Callable[[MeshNode], bool], what: str) -> None:
        """Return when this holds at each node that lives."""
        for node in self.living:
            node.awaits(what, lambda node=node: true(node))  # type: ignore[misc]  # bound now

    def logs(self) -> str:
        """Return what all of them ever wrote."""
        return "\n".join([*self.said, *(node.process.said() for node in self.living)])

    def close(self) -> None:
        """End everybody."""
        for name in list(self.nodes):
            self._end(name, signal.SIGTERM)

    def _end(self, name: str, number: signal.Signals) -> int:
        process = self.nodes.pop(name).process
        process.signal(number)
        code = process.wait(WAIT_S)
        said = process.said()
        self.said.append(said)
        self._stacks.pop(name).close()
        assert "Traceback" not in said, said
        return code


@contextmanager
def running_trio(folder: Path, *flags: str) -> Iterator[Trio]:
    """Run three nodes that see each other."""
    with running_members(folder, NAMES, *flags) as trio:
        yield trio


@contextmanager
def running_members(folder: Path, names: Sequence[str], *flags: str) -> Iterator[Trio]:
    """Run nodes of these names that see each other, fewer than three as well."""
    trio = Trio(folder, make_key(folder), flags)
    try:
        for name in names:
            trio.start(name)
        trio.all_agree()
        yield trio
    finally:
        trio.close()
