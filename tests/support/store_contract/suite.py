"""The contract of every store: one suite, written against the protocol alone.

A store is tested by a class and a fixture:

    class TestOurStore(HistoryStoreContract):
        @pytest.fixture
        def maker(self) -> StoreMaker: ...
"""

from collections.abc import AsyncIterator

import pytest

from support.store_contract.chains import ChainCases
from support.store_contract.conversations import ConversationCases
from support.store_contract.documents import DocumentCases
from support.store_contract.expiry import ExpiryCases
from support.store_contract.interleavings import InterleavingCases
from support.store_contract.items import ItemCases
from support.store_contract.itself import StoreCases
from support.store_contract.logs import EventCases, KeyCases
from support.store_contract.maker import StoreMaker
from support.store_contract.paging import NewestCases, PagingCases
from support.store_contract.responses import IdentifierCases, ResponseCases
from support.store_contract.runs import RunCases
from support.store_contract.stage import Stage
from support.store_contract.tenants import TenantCases
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
    EventCases,
    KeyCases,
    DocumentCases,
    ExpiryCases,
    TenantCases,
    InterleavingCases,
    StoreCases,
):
    """All cases."""


class HistoryStoreContract(_Cases):
    """All cases, with the ids of a chat in one thread."""

    @pytest.fixture
    async def stage(self, maker: StoreMaker) -> AsyncIterator[Stage]:
        """A fresh store."""
        async with maker.open() as opened:
            yield Stage(opened)


class ScatteredStoreContract(_Cases):
    """All cases, with each id in a thread of its own: for stores to which a thread means something."""

    @pytest.fixture
    async def stage(self, maker: StoreMaker) -> AsyncIterator[Stage]:
        """A fresh store."""
        async with maker.open() as opened:
            yield Stage(opened, scattered=True)
