"""What engines have cached, known on nodes that never asked them: real nodes, simulated engines."""

from pathlib import Path

from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import call, chat, ready_at
from support.processes.simulated_engines import running_simulated

TEXT = "The quick brown fox jumps over the lazy dog, again and again, until nobody looks. " * 40


def followed(node: MeshNode) -> bool:
    """Return whether this node hears the engine itself."""
    return node.node.metric("smg_node_kv_batches_total") > 0


def told(node: MeshNode) -> bool:
    """Return whether it knows of the engine's cache from another node."""
    return node.node.metric("smg_node_prefix_told_workers") == 1


def blocks(node: MeshNode) -> float:
    return node.node.metric("smg_node_kv_index_blocks")


def add(trio: Trio, url: str) -> None:
    assert call(trio["a"], "POST", "/workers", {"url": url}).status == 202


def test_of_four_nodes_two_follow_an_engine_and_the_others_know_it_from_them(
    tmp_path: Path,
) -> None:
    with (
        running_simulated(tmp_path, "--model", "sim", "--itl-ms", "1") as engine,
        running_trio(tmp_path) as trio,
    ):
        url = f"grpc://{engine.address}"
        trio.start("d")
        add(trio, url)
        trio.on_all(lambda node: ready_at(node, [url]), "ready")
        for number in range(6):
            answer = chat(trio.living[number % 4], "sim", text=f"{number % 3} {TEXT}", tokens=1)
            assert answer.status == 200, answer
        trio.on_all(lambda node: followed(node) or told(node), "knowing of the engine's cache")
        followers = [node for node in trio.living if followed(node)]
        assert len(followers) == 2
        most = max(blocks(node) for node in followers)
        assert most > 0
        trio.on_all(lambda node: blocks(node) >= most, "knowing as much as those who follow")
        for node in trio.living:
            assert not node.node.metric("smg_node_state_faults_total")

        late = trio.start("e")
        late.awaits("ready with what the others know", lambda: blocks(late) >= most)

        gone = followers[0].name
        trio.kill(gone)
        trio.on_all(lambda node: blocks(node) >= most, "knowing as much after a death")
        assert chat(trio.living[0], "sim", text=TEXT, tokens=1).status == 200


def test_guesses_about_an_engine_that_says_nothing_reach_the_other_nodes(tmp_path: Path) -> None:
    with (
        running_simulated(tmp_path, "--contract", "mlx", "--model", "sim") as engine,
        running_trio(tmp_path) as trio,
    ):
        url = f"grpc://{engine.address}"
        add(trio, url)
        trio.on_all(lambda node: ready_at(node, [url]), "ready")
        assert chat(trio["a"], "sim", text=TEXT, tokens=1).status == 200
        trio.on_all(lambda node: blocks(node) > 0, "guessing as the one that asked")
        assert trio["a"].node.metric("smg_node_prefix_hints_total", what="mentioned") > 0
        assert trio["b"].node.metric("smg_node_prefix_hints_total", what="assume") > 0
        assert not any(told(node) or followed(node) for node in trio.living)
