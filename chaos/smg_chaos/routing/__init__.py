"""Gateways and engines on virtual time: what a policy is worth to a pool of large models."""
