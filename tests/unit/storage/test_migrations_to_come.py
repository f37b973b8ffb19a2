"""Revisions as they may follow one day: several steps up and down, with rows, and one that fails half way."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from smg_migrations import running
from smg_migrations.running import History
from smg_storage.migrate import Called
from smg_storage.sql.schema.naming import Naming
from smg_storage.sql.schema.tables import Tables
from support.stores.future_revisions import three_revisions
from support.stores.migrations import differences, fill

T = TypeVar("T")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return three_revisions(tmp_path / "revisions")


@pytest.fixture
def within(tmp_path: Path) -> Callable[[Callable[[Connection], T]], T]:
    engine = create_engine(
        f"sqlite:///{tmp_path / 'h.db'}",
        poolclass=NullPool,
        connect_args={"isolation_level": None},
    )
    event.listen(engine, "begin", lambda at: at.exec_driver_sql("BEGIN EXCLUSIVE"))

    def run(job: Callable[[Connection], T]) -> T:
        with engine.connect() as connection:
            return job(connection)

    return run


NAMES = Called(Naming())


def test_every_step_is_taken_up_and_down_and_the_rows_stay(
    within: Callable[[Callable[[Connection], object]], object], history: History
) -> None:
    def rows(connection: Connection) -> int:
        found = connection.exec_driver_sql("SELECT count(*) FROM responses").scalar_one()
        connection.rollback()
        return int(found)

    def job(connection: Connection) -> None:
        first = running.upgrade(connection, NAMES, to="0001", history=history)
        with connection.begin():
            fill(connection, Tables(), rows=1_000)
        second = running.upgrade(connection, NAMES, to="0002", history=history)
        assert (first.steps, second.found, second.reached) == (
            *(history.between("", "0001"), "0001", "0002"),
        )
        third = running.upgrade(connection, NAMES, history=history)
        assert third.reached == "0003"
        assert rows(connection) == 1_000
        with connection.begin():
            assert len(differences(connection, Tables())) >= 3
        back = running.downgrade(connection, NAMES, to="0001", history=history)
        assert [step[:9] for step in back.steps] == ["undo 0003", "undo 0002"]
        assert rows(connection) == 1_000
        with connection.begin():
            assert differences(connection, Tables()) == []
        assert running.upgrade(connection, NAMES, history=history).reached == "0003"
        assert rows(connection) == 1_000

    within(job)


def test_what_fails_half_way_is_undone_and_can_be_tried_again(
    within: Callable[[Callable[[Connection], object]], object], history: History
) -> None:
    def job(connection: Connection) -> None:
        running.upgrade(connection, NAMES, to="0001", history=history)
        with connection.begin():
            fill(connection, Tables(), rows=3)
            connection.exec_driver_sql("UPDATE conversation_items SET id = 'bad' WHERE id = 'x1'")
        with pytest.raises(DatabaseError):
            running.upgrade(connection, NAMES, history=history)
        with connection.begin():
            assert running.current(connection, NAMES) == "0001"
            assert differences(connection, Tables()) == []
            connection.exec_driver_sql("DELETE FROM conversation_items")
        assert running.upgrade(connection, NAMES, history=history).reached == "0003"

    within(job)
