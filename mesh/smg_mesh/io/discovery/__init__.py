"""Discovery: finds peers by seeds, DNS and earlier peers, and this node's own address."""
