"""May this request enter now: limits of the whole cluster, charged here, in one step."""
