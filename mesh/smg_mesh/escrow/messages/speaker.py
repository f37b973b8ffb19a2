"""Under whose name a message speaks: it must be the name of the member whose packet it came in."""

from smg_mesh.escrow.messages.messages import (
    FoundAsk,
    FoundVote,
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
    """Return that name; empty for what anybody may pass on."""
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
