"""Hosts of a simulated cluster: their disks and clocks, the nodes on them, and the links between."""
