"""Catalog of what a model is offered of servers' tools: names, schemas, hints, and what is withheld. Pure."""
