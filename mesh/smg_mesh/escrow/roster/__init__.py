"""Roster: the names that vote: founding, changes by Paxos, and presence of members."""
