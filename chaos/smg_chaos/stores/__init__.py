"""Real PostgreSQL and Redis servers, found on a bare machine and run as nobody in particular."""
