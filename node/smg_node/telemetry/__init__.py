"""What the node says about itself: metrics, traces, logs."""
