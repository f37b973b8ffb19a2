"""Store part of responses and chains, in tables; turns are `store`'s own."""

from collections.abc import Sequence

from smg_storage.records import (
    Access,
    Chain,
    PageAsk,
    Patch,
    ResponsePage,
    Status,
    StoredResponse,
)
from smg_storage.sql.executor import Executor
from smg_storage.sql.operations import responses


class SqlResponses:
    """Responses and chains, in tables."""

    def __init__(self, door: Executor) -> None:
        self._door = door

    async def store_response(self, access: Access, record: StoredResponse) -> str:
        """Keep a response without anything else."""
        return await self._door.write(access, lambda work: responses.store_response(work, record))

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Return a response."""
        return await self._door.read(access, lambda work: responses.get_response(work, response_id))

    async def patch_response(
        self,
        access: Access,
        response_id: str,
        patch: Patch,
        *,
        from_statuses: Sequence[Status],
        token: int = 0,
    ) -> StoredResponse | None:
        """Change a response that is as it is thought to be."""
        return await self._door.write(
            access,
            lambda work: responses.patch_response(work, response_id, patch, from_statuses, token),
        )

    async def delete_response(self, access: Access, response_id: str) -> bool:
        """Forget a response with all that hangs on it."""
        return await self._door.write(
            access, lambda work: responses.delete_response(work, response_id)
        )

    async def get_response_chain(
        self, access: Access, response_id: str, *, items_max: int, bytes_max: int
    ) -> Chain:
        """Return a response and what it continues."""
        return await self._door.read(
            access, lambda work: responses.get_chain(work, response_id, items_max, bytes_max)
        )

    async def list_identifier_responses(
        self, access: Access, identifier: str, page: PageAsk
    ) -> ResponsePage:
        """Return the responses made for a person."""
        return await self._door.read(
            access, lambda work: responses.list_responses(work, identifier, page)
        )

    async def delete_identifier_responses(self, access: Access, identifier: str) -> int:
        """Forget all of them."""
        return await self._door.write(
            access, lambda work: responses.delete_responses(work, identifier)
        )
