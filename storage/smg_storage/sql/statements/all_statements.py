"""All statements of a database, in one dialect."""

from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.conversations import ConversationStatements, ItemStatements
from smg_storage.sql.statements.housekeeping import UpkeepStatements
from smg_storage.sql.statements.responses import ResponseStatements
from smg_storage.sql.statements.runs import EventStatements, KeyStatements, RunStatements


class Statements:
    """Statements to the tables, in one dialect; made once, and compiled once
    each by the code that runs them.
    """

    def __init__(self, tables: Tables, dialect: str) -> None:
        self.tables = tables
        self.dialect = dialect
        self.conversations = ConversationStatements(tables)
        self.items = ItemStatements(tables)
        self.responses = ResponseStatements(tables, dialect)
        self.runs = RunStatements(tables)
        self.events = EventStatements(tables, dialect)
        self.keys = KeyStatements(tables)
        self.upkeep = UpkeepStatements(tables, dialect)
