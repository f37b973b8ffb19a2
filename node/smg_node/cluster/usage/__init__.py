"""Usage of requests and tokens: counted by this node, kept on its disk, summed over the cluster."""
