"""A Kubernetes source in front of a real API server: the suite that it passes in front of the scripted one too."""

import asyncio
import base64
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import yaml

from smg_node.discovery.kubernetes.api_server import ApiServer, access_reader
from smg_node.discovery.kubernetes.options import KubernetesOptions
from support.kubernetes.peer_contract import PEER_CONTRACT, PeerClause
from support.kubernetes.real_stage import ControlPlane, RealStage, control_plane
from support.kubernetes.running_source import READY, running
from support.kubernetes.server_contract import SERVER_CONTRACT
from support.kubernetes.source_contract import CONTRACT, Clause, a_pod

NUMBERS = count(1)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One server for all; each test has a namespace of its own."""
    with control_plane(tmp_path_factory.mktemp("kube")) as running:
        yield running


async def held(clause: Clause, plane: ControlPlane) -> None:
    """Hold to a clause in a namespace of its own."""
    stage = RealStage(plane, f"serving-{next(NUMBERS)}")
    await stage.open()
    try:
        await clause(stage)
    finally:
        await stage.client.close()


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_source_keeps_its_contract(clause: Clause, plane: ControlPlane) -> None:
    await held(clause, plane)


@pytest.mark.parametrize("clause", SERVER_CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_the_server_is_as_the_scripted_one_says(clause: Clause, plane: ControlPlane) -> None:
    await held(clause, plane)


@pytest.mark.parametrize("clause", PEER_CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.asyncio
async def test_peers_are_found_as_the_contract_says(
    clause: PeerClause, plane: ControlPlane
) -> None:
    await held(clause, plane)


@pytest.mark.parametrize("form", ["inline", "files"])
@pytest.mark.asyncio
async def test_a_kubeconfig_leads_to_the_server(
    form: str, plane: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    namespace = f"serving-{next(NUMBERS)}"
    stage = RealStage(plane, namespace)
    await stage.open()
    try:
        await asyncio.to_thread(write_kubeconfig, path, plane, namespace, form)
        options = KubernetesOptions("app=vllm", port="grpc", kubeconfig=str(path))
        await a_pod(stage, "vllm-0", "10.1.0.1")
        async with running(ApiServer(access_reader(options.kubeconfig)), options) as views:
            await views.until_states({"10.1.0.1:50051": READY})
    finally:
        await stage.client.close()


def write_kubeconfig(path: Path, plane: ControlPlane, namespace: str, form: str) -> None:
    """Write what installers of clusters write, with the authority in it or beside it."""
    text = base64.b64encode(plane.authority).decode()
    inline, beside = {"certificate-authority-data": text}, {"certificate-authority": "ca.crt"}
    (path.parent / "ca.crt").write_bytes(plane.authority)
    cluster = {"server": plane.base, **(inline if form == "inline" else beside)}
    context = {"cluster": "kubernetes", "user": "me", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "clusters": [{"cluster": cluster, "name": "kubernetes"}],
        "contexts": [{"context": context, "name": "me@kubernetes"}],
        "current-context": "me@kubernetes",
        "kind": "Config",
        "preferences": {},
        "users": [{"name": "me", "user": {"token": plane.watcher_token}}],
    }
    path.write_text(yaml.safe_dump(document))
