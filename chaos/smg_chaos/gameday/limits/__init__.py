"""Limits gameday: a cluster at ten times its limits, hurt meanwhile, and counted at its engines."""
