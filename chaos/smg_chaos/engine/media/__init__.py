"""Pictures in requests to simulated engines: what is in them, what is wrong with them, and what the engine sees."""
