"""Answers of the Interactions API: the interaction object, its steps, and its stream of events."""
