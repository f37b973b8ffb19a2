"""Pipeline: one generation from request to events: prompt, placement, engine calls, stream, relay."""
