"""Generation: run of one generation: call plan, engine calls, retries, limits, event delivery."""
