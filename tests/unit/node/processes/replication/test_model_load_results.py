import asyncio
from pathlib import Path

import pytest

from smg_node.core.errors import invalid
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.model_load_results import FINDING, hear_findings, tell_findings
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import bytewise, fleet_of, running
from support.http.raw_http import until


class Fails:
    def __init__(self) -> None:
        self.broken = True

    def load(self, bundle: TokenizerBundle) -> LoadedTokenizer:
        if self.broken:
            raise invalid("broken files")
        return bytewise(bundle)


async def test_a_control_process_goes_by_what_its_data_processes_find(tmp_path: Path) -> None:
    loading = Fails()
    bus = Bus(str(tmp_path / "bus"), expected=(), alive=lambda process: True)
    uplink = Uplink(str(tmp_path / "bus"), "1-11")
    data = fleet_of({"a": FakeEngine()}, tmp_path / "d", load=loading.load)
    control = fleet_of({"a": FakeEngine()}, tmp_path / "c", at_once=False)
    tell_findings(uplink, data.models)
    hear_findings(bus, control)
    async with running(control, ["a"]), running(data, ["a"]):
        (worker,) = control.workers()
        await until(lambda: worker.routable and data.models.findings())
        await bus.open()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in (bus, uplink)]
            await until(lambda: not worker.routable)
            assert worker.reason == "broken files"
            loading.broken = False
            await until(lambda: worker.routable)
            assert worker.model is not None
            assert worker.model.unread is not None
            with pytest.raises(AssertionError, match="one taker"):
                bus.on(FINDING, lambda process, content: None)
            bus.close()
            for task in tasks:
                task.cancel()
