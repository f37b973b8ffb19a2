"""The contract of every store: one suite, written against the protocol alone.

A store is tested by a class and a fixture:

    class TestOurStore(HistoryStoreContract):
        @pytest.fixture
        def maker(self) -> StoreMaker: ...

All cases of a class run on one event loop, so that a maker may keep its connections from case to case (`KeptMaker`): it
is then made by a fixture with `scope="class", loop_scope="class"`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.store_contract.chains import ChainCases
from support.store_contract.conversations import ConversationCases
from support.store_contract.documents import DocumentCases
from support.store_contract.expiry import ExpiryCases
from support.store_contract.figures import FigureCases
from support.store_contract.interleavings import InterleavingCases
from support.store_contract.items import ItemCases
from support.store_contract.itself import StoreCases
from support.store_contract.logs import EventCases, KeyCases
from support.store_contract.maker import StoreMaker
from support.store_contract.paging import NewestCases, PagingCases
from support.store_contract.registered import RegisteredCases
from support.store_contract.responses import IdentifierCases, ResponseCases
from support.store_contract.retention import RetentionCases
from support.store_contract.runs import RunCases
from support.store_contract.stage import Stage
from support.store_contract.tenants import TenantCases
from support.store_contract.texts import TextCases
from support.store_contract.turns import TurnCases


class _Cases(
    ConversationCases,
    ItemCases,
    PagingCases,
    NewestCases,
    ResponseCases,
    IdentifierCases,
    ChainCases,
    TurnCases,
    RunCases,
    RegisteredCases,
    EventCases,
    KeyCases,
    DocumentCases,
    TextCases,
    ExpiryCases,
    RetentionCases,
    TenantCases,
    InterleavingCases,
    FigureCases,
    StoreCases,
):
    """All cases."""

    pytestmark = pytest.mark.asyncio(loop_scope="class")


class HistoryStoreContract(_Cases):
    """All cases, with the ids of a chat in one thread."""

    @pytest_asyncio.fixture(loop_scope="class")
    async def stage(self, maker: StoreMaker) -> AsyncIterator[Stage]:
        """A fresh store."""
        async with maker.open() as opened:
            yield Stage(opened)


class ScatteredStoreContract(_Cases):
    """All cases, with each id in a thread of its own: for stores to which a thread means something."""

    @pytest_asyncio.fixture(loop_scope="class")
    async def stage(self, maker: StoreMaker) -> AsyncIterator[Stage]:
        """A fresh store."""
        async with maker.open() as opened:
            yield Stage(opened, scattered=True)
