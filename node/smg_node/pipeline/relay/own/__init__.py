"""Own engines behind a route: calls of targets that stand for models of the cluster's own workers."""
