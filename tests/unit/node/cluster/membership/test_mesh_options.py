from pathlib import Path

from smg_node.cluster.membership.mesh_options import mesh_options, state_homes
from smg_node.config.sections.mesh import MeshSection
from smg_node.config.settings import Settings


def settings(folder: Path, **mesh: object) -> Settings:
    return Settings(name="a", data_dir=folder, mesh=MeshSection.model_validate(mesh))


def test_what_a_node_kept_alone_and_in_its_mesh_is_taken_over_in_both_directions(
    tmp_path: Path,
) -> None:
    alone, (was_member,) = state_homes(settings(tmp_path))
    member, (was_alone,) = state_homes(settings(tmp_path, insecure=True))
    assert (alone, member) == (was_alone, was_member)
    assert alone == tmp_path
    assert member == mesh_options(settings(tmp_path, insecure=True), version="1").data_dir


def test_another_cluster_has_another_state(tmp_path: Path) -> None:
    member, before = state_homes(settings(tmp_path, insecure=True, label="blue"))
    other, _ = state_homes(settings(tmp_path, insecure=True, label=".."))
    default, _ = state_homes(settings(tmp_path, insecure=True))
    assert len({member, other, default}) == 3
    assert default in member.parents
    assert default in other.resolve().parents
    assert before == (tmp_path,)
