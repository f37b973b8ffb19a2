"""Speaker of a message: the name it speaks under, which must be that of the member it came from."""

from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote
from smg_mesh.escrow.messages.messages import (
    LeaseAsk,
    LeaseVote,
    LoanAsk,
    LoanGive,
    LoanLook,
    LoanTell,
    Message,
    RecordsAsk,
    RecordsTell,
    RightsAsk,
    RightsGive,
    RosterAsk,
    RosterTell,
    RosterVote,
    RosterWant,
)


def speaker(message: Message) -> str:
    """Return the name a message speaks under; empty for what any member may pass on."""
    match message:
        case LeaseAsk(name=name) | RightsAsk(name=name) | RecordsAsk(name=name):
            return name
        case LeaseVote(voter=name) | RecordsTell(voter=name):
            return name
        case RightsGive(owner=name):
            return name
        case RosterAsk(name=name) | RosterWant(name=name) | FoundAsk(name=name):
            return name
        case RosterVote(voter=name) | FoundVote(voter=name):
            return name
        case LoanAsk(name=name) | LoanGive(name=name) | LoanLook(name=name) | LoanTell(name=name):
            return name
        case RosterTell():
            return ""
