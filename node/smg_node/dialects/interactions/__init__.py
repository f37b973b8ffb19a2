"""Interactions dialect: steps of Google's Interactions API, read from bodies and shown in answers."""
