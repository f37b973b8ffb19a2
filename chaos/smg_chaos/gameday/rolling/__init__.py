"""Rolling restart gameday: every node in turn, under streams that must not be disturbed."""
