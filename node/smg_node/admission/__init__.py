"""Admission: limits of the whole cluster, charged per request on this node, in one step."""
