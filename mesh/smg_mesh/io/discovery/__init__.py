"""Discovery: finds peers by seeds, DNS and peers of an earlier life, and this node's own address."""
