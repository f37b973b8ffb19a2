"""Clients of a game day: chat users, operators, fixed-rate streams, load on a limit, a balancer."""
