"""Media of simulated engines: what pictures a request has, what is wrong with them, and what the engine sees."""
