"""Engines: clients of inference engines; one normalised interface over every published contract."""
