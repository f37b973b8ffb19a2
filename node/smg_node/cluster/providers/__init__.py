"""Providers in the cluster: what nodes share of them, and their models as workers of the fleet."""
