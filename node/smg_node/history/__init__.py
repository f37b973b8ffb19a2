"""History: loads stored conversations into a request, commits new turns, serves stored responses."""
