"""API server of Kubernetes on purpose: pods, endpoint slices, lists, pages and watches, with faults as real ones have."""
