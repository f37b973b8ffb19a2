"""How this node is one of several: the mesh, wired to settings, routes, probes, metrics and farewell."""
