"""What is open in all processes of a node: added up, and never called nothing where somebody did not say."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from smg_node.http.ports.drain import OpenWork, Prober
from smg_node.processes.ipc.ipc_link import LinkCutError
from smg_node.processes.reports.open_work_query import OpenWorkOfAll, open_work_reply, together

probers = st.builds(
    Prober,
    st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["", "haproxy"]),
    st.floats(0, 60),
    st.booleans(),
)
works = st.builds(
    OpenWork,
    *(st.integers(0, 1000),) * 3,
    st.booleans(),
    st.floats(0, 10),
    st.none() | st.floats(0, 100),
    st.lists(probers, max_size=3).map(tuple),
    st.lists(st.sampled_from(["1-7", "2-8"]), max_size=1).map(tuple),
)


@given(st.lists(works, max_size=5))
def test_it_adds_up_and_the_last_to_end_counts(several: list[OpenWork]) -> None:
    whole = together(several)
    assert whole.left == sum(one.left for one in several)
    assert whole.taking is any(one.taking for one in several)
    cuts_s = [one.cut_left_s for one in several if one.cut_left_s is not None]
    assert whole.cut_left_s == (max(cuts_s) if cuts_s else None)
    assert len(whole.silent) == sum(len(one.silent) for one in several)


@given(st.lists(works, min_size=1, max_size=4))
def test_of_each_prober_the_latest_word_is_kept(several: list[OpenWork]) -> None:
    asked = [one for work in several for one in work.probers]
    for kept in together(several).probers:
        same = [one for one in asked if (one.address, one.agent) == (kept.address, kept.agent)]
        assert kept.ago_s == min(one.ago_s for one in same)
    assert len({(one.address, one.agent) for one in asked}) == len(together(several).probers)


class Processes:
    """Data processes that say what they are told to; one without words is gone, a deaf one never answers."""

    def __init__(self, **words: bytes | None) -> None:
        self.words = words
        self.deaf: set[str] = set()

    async def ask(self, process: str, question: bytes) -> bytes:
        if process in self.deaf:
            await asyncio.sleep(9)
        word = self.words[process]
        if word is None:
            raise LinkCutError("gone")
        return word

    async def read(self, own: OpenWork) -> OpenWork:
        of_all = OpenWorkOfAll(lambda: sorted(self.words), self.ask, patience_s=0.02)
        return await of_all.read(own)


async def test_the_control_process_adds_what_others_have_open_to_its_own() -> None:
    processes = Processes(
        one=open_work_reply(OpenWork(1, 2)), two=open_work_reply(OpenWork(0, 3, taking=True))
    )
    whole = await processes.read(OpenWork(background=4))
    assert (whole.requests, whole.streams, whole.background) == (1, 5, 4)
    assert (whole.taking, whole.silent) == (True, ())


async def test_who_is_deaf_gone_or_not_understood_is_named() -> None:
    processes = Processes(
        deaf=b"",
        gone=None,
        old=b"\xc1",
        whole=open_work_reply(OpenWork(1)),
        wrong=b"\x93\x01\x02\x03",
    )
    processes.deaf.add("deaf")
    whole = await processes.read(OpenWork())
    assert (whole.left, whole.silent) == (1, ("deaf", "gone", "old", "wrong"))
