"""Filters of relayed answers: what this node does to an HTTP worker's answer before its client gets it."""
