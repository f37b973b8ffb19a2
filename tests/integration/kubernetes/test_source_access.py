"""How a source reaches its API server: tokens that change, certificates, proxies, answers that are none."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

import pytest

from smg_chaos.kubernetes.server import KubernetesServer
from smg_node.discovery.kubernetes.api_server import ApiServer, access_reader
from smg_node.discovery.kubernetes.kube_config import Access, AccessError
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.watching import WatchTimes
from support.http.certificate_authority import Authority
from support.kubernetes.kube_client import MERGE
from support.kubernetes.running_source import READY, UNREADY, running
from support.kubernetes.scripted_stage import ScriptedStage, scripted_stage
from support.kubernetes.source_contract import QUICK, a_pod, a_source

pytestmark: Final = [pytest.mark.integration, pytest.mark.asyncio]
ONE = {"10.1.0.1:50051": READY}
OPTIONS = KubernetesOptions("app=vllm", namespace="serving", port="50051")


async def with_a_pod(stage: ScriptedStage) -> None:
    await a_pod(stage, "vllm-0", "10.1.0.1")


async def test_a_token_that_expired_is_read_again_once() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        stage.faults.tokens = ["new"]
        tokens = ["old", "new"]

        def read() -> Access:
            token = tokens.pop(0) if len(tokens) > 1 else tokens[0]
            return Access(f"http://127.0.0.1:{stage.server.port}", token=token)

        async with running(ApiServer(read), OPTIONS) as views:
            await views.until_states(ONE)
            assert views.source.counts.failures == 0
        assert stage.server.audit.statuses["ask 401"] == 1


async def test_a_token_that_is_wrong_is_named_and_asked_with_less_and_less_often() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        stage.faults.tokens = ["right"]
        async with a_source(stage) as views:
            await views.until(lambda views: views.now.trouble != "")
            expected = "401: the API server does not know this node's token: Unauthorized"
            assert views.now.trouble == expected
            await asyncio.sleep(0.5)
        assert stage.server.audit.statuses["ask 401"] == 2


async def test_a_mounted_token_is_taken_anew_when_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        stage.faults.tokens = ["first"]
        token = tmp_path / "token"
        token.write_text("first")
        config = tmp_path / "config"
        config.write_text(
            "current-context: a\n"
            f"clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{stage.server.port}'}}}}]\n"
            "users: [{name: a, user: {tokenFile: token}}]\n"
            "contexts: [{name: a, context: {cluster: a, user: a, namespace: serving}}]\n"
        )
        # Proxies of the environment are not for the API server.
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        options = KubernetesOptions("app=vllm", port="50051", kubeconfig=str(config))
        times = WatchTimes(watch_min_s=1, watch_max_s=1, early_ms=500)
        async with running(
            ApiServer(access_reader(options.kubeconfig)), options, times=times
        ) as views:
            await views.until_states(ONE)
            # Both count while one watch that read the old file may still be on its way.
            for valid in (["first", "second"], ["second"]):
                stage.faults.tokens = valid
                token.write_text("second")
                await views.until_watches(2)
            assert views.source.counts.failures == 0
        assert stage.server.audit.statuses["ask 401"] == 0


def served_by(authority: Authority, tmp_path: Path, name: str) -> ssl.SSLContext:
    """A server's context: a certificate for localhost, and only clients of the same authority."""
    certificate, key = authority.issue("localhost")
    (tmp_path / f"{name}.pem").write_bytes(certificate + key)
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode()
    )
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / f"{name}.pem")
    return context


async def test_certificates_of_both_sides_are_checked(tmp_path: Path) -> None:
    ours, others = Authority("ours"), Authority("others")
    server = KubernetesServer()
    port = await server.listen("127.0.0.1", 0, served_by(ours, tmp_path, "server"))
    server.cluster.create("pods", "serving", {"metadata": {"name": "a", "labels": {"app": "vllm"}}})
    status = {"status": {"podIP": "10.1.0.1", "phase": "Running"}}
    server.cluster.patch(("pods", "serving", "a"), status, is_status=True)
    certificate, key = ours.issue("node")
    base = f"https://localhost:{port}"
    try:
        good = Access(base, authority=ours.certificate, certificate=certificate, key=key)
        async with running(ApiServer(lambda: good), OPTIONS) as views:
            await views.until(lambda views: "10.1.0.1:50051" in views.states)
        wrong = Access(base, authority=others.certificate, certificate=certificate, key=key)
        async with running(ApiServer(lambda: wrong), OPTIONS, times=QUICK) as views:
            await views.until(lambda views: views.now.trouble != "")
            assert "its certificate is not trusted" in views.now.trouble
        broken = Access(base, authority=b"none")
        async with running(ApiServer(lambda: broken), OPTIONS, times=QUICK) as views:
            await views.until(lambda views: views.now.trouble != "")
            assert "a certificate or key cannot be used" in views.now.trouble
    finally:
        await server.close()


async def test_files_that_are_not_there_yet_are_waited_for() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        reads: list[int] = []

        def read() -> Access:
            reads.append(1)
            if len(reads) < 3:
                raise AccessError("/token: no such file or directory")
            return stage.access()

        async with running(ApiServer(read), OPTIONS, times=WatchTimes(retry_min_ms=50)) as views:
            await views.until(lambda views: views.now.trouble != "")
            assert views.now.trouble == "/token: no such file or directory"
            await views.until_states(ONE)
            await views.until(lambda views: views.now.trouble == "")


async def test_garbage_in_a_watch_costs_a_list() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        async with a_source(stage, WatchTimes(retry_min_ms=50)) as views:
            await views.until_states(ONE)
            await views.until(lambda views: stage.server.audit.watches == 1)
            stage.server.say(b'{"type":"ADDED","object":[]}\n')
            await views.until(lambda views: views.source.counts.garbage == 1)
            await views.until(lambda views: views.source.counts.watches == 2)
            assert views.states == ONE
            assert views.now.trouble == ""


async def test_an_endless_line_ends_the_watch_within_its_bound() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        async with a_source(stage, WatchTimes(retry_min_ms=50)) as views:
            await views.until_states(ONE)
            await views.until(lambda views: stage.server.audit.watches == 1)
            stage.server.say(b"x" * 10_000_000)
            await views.until(lambda views: views.source.counts.garbage == 1)
            await views.until(lambda views: views.source.counts.watches == 2)


async def test_a_broken_connection_costs_a_list() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        async with a_source(stage, WatchTimes(proven_ms=1)) as views:
            await views.until_states(ONE)
            await views.until(lambda views: stage.server.audit.watches == 1)
            stage.server.cut_watches()
            await views.until(lambda views: views.source.counts.watches == 2)
            assert views.source.counts.lists == 2


async def test_a_silent_watch_is_left_and_listed_again() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        async with a_source(stage, WatchTimes(silence_ms=1_500)) as views:
            await views.until_states(ONE)
            stage.faults.silent = True
            await a_pod(stage, "vllm-1", "10.1.0.2")
            await views.until_states({**ONE, "10.1.0.2:50051": READY})
            assert views.source.counts.silent >= 1
            assert views.now.trouble == ""


async def test_a_store_that_hangs_is_named_and_the_watch_goes_on() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        stage.faults.store_stopped = True
        times = WatchTimes(list_deadline_ms=300, retry_min_ms=50)
        async with a_source(stage, times) as views:
            await views.until(lambda views: "did not come in time" in views.now.trouble)
            stage.faults.store_stopped = False
            await views.until_states(ONE)


async def test_a_server_that_asks_to_wait_is_obeyed() -> None:
    async with scripted_stage() as stage:
        stage.faults.failing = {"list": 429}
        stage.faults.retry_after_s = 2
        async with a_source(stage, WatchTimes(retry_min_ms=50)) as views:
            await views.until(lambda views: views.now.trouble.startswith("429: "))
            await asyncio.sleep(1)
            assert stage.server.audit.asked["list"] == 1
            stage.faults.failing = {}
            await views.until(lambda views: views.now.whole_ms > 0)


async def test_all_namespaces_are_asked_for_at_once() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        await stage.client.pod("b", namespace="batch", labels={"app": "vllm"}, ip="10.1.0.2")
        options = KubernetesOptions("app=vllm", namespace="*", port="50051")
        async with running(ApiServer(stage.access), options) as views:
            await views.until_states({**ONE, "10.1.0.2:50051": READY})
            stage.faults.denied = ["list"]
        async with running(ApiServer(stage.access), options) as views:
            await views.until(
                lambda views: "no right to list pods in all namespaces" in views.now.trouble
            )


async def test_endpoints_of_a_service_are_followed() -> None:
    async with scripted_stage() as stage:
        path = "/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices"
        one = {"addresses": ["10.1.0.1"], "conditions": {}}
        made = {
            "metadata": {"name": "vllm-a", "labels": {"kubernetes.io/service-name": "vllm"}},
            "addressType": "IPv4",
            "endpoints": [one],
            "ports": [{"name": "grpc", "port": 50051}],
        }
        await stage.client.do("POST", path, made)
        options = KubernetesOptions(service="vllm", namespace="serving", port="grpc")
        async with running(ApiServer(stage.access), options) as views:
            await views.until_states(ONE)
            two = {"addresses": ["10.1.0.2"], "conditions": {"ready": False}}
            await stage.client.do("PATCH", f"{path}/vllm-a", {"endpoints": [one, two]}, kind=MERGE)
            await views.until_states({**ONE, "10.1.0.2:50051": UNREADY})
            await stage.client.do("DELETE", f"{path}/vllm-a", {})
            await views.until_states({})
            assert views.source.counts.lists == 1


async def test_a_source_leaves_no_connection_and_may_run_again() -> None:
    async with scripted_stage() as stage:
        await with_a_pod(stage)
        async with a_source(stage) as views:
            await views.until_states(ONE)
            await views.until(lambda views: stage.server.audit.watches == 1)
        await views.until(lambda views: stage.server.audit.watches == 0)
        lists = stage.server.audit.asked["list"]
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            again = group.create_task(views.source.run(views.show))
            await views.until(lambda views: stage.server.audit.watches == 1)
            again.cancel()
        assert stage.server.audit.asked["list"] == lists + 1
        assert stage.server.audit.most_watches == 1


async def test_a_thousand_pods_in_a_second_never_block_the_loop_for_long() -> None:
    async with scripted_stage() as stage, a_source(stage) as views:
        await views.until(lambda views: views.now.whole_ms > 0)
        await views.until(lambda views: stage.server.audit.watches == 1)
        for number in range(1_000):
            address = f"10.2.{number // 250}.{number % 250 + 1}"
            said = {"metadata": {"name": f"v-{number}", "labels": {"app": "vllm"}}}
            stage.cluster.create("pods", "serving", said)
            running_pod = {"status": {"podIP": address, "phase": "Running"}}
            stage.cluster.patch(("pods", "serving", f"v-{number}"), running_pod, is_status=True)
            if number % 50 == 0:
                await asyncio.sleep(0)
        await views.until(lambda views: len(views.states) == 1_000)
        assert views.source.counts.lists == 1
