"""Responses of a session: parameters, public object, and the events that tell an answer."""
