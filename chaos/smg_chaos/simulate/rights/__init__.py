"""Rights in a simulated cluster: load on limits, shares of nodes, and checks that limits hold."""
