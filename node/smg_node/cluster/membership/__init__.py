"""Membership: this node as a member of the mesh: start, drain, leave, queries to members."""
