"""Migration error: why a migration is not done."""


class MigrationError(Exception):
    """A migration that cannot be done; nothing was changed. The message says
    what an operator has to do first.
    """
