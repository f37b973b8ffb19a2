"""Migration error: why a migration is not done."""


class MigrationError(Exception):
    """It cannot be done, and nothing was changed; the message says
    what an operator has to do first.
    """
