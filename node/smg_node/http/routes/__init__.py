"""Routes: the HTTP routes, by audience: inference, stored, cluster, tenants, workers, node."""
