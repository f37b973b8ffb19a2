"""History while its store dies and comes back, and a node with it: nothing acknowledged is lost, nothing is there twice."""
