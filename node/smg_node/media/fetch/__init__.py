"""Fetch: media of http and https URLs that clients name: whom to ask, how much to take, how long to wait."""
