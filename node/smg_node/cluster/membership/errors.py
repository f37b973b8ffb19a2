"""Member errors: the refusals that name a member of the cluster."""

from smg_node.core.errors import ErrorKind, SmgError


def no_member(name: str) -> SmgError:
    """Return the error for a name that no member has."""
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"no member is called {name[:64]!r}",
        where="name",
        code="member_not_found",
    )
