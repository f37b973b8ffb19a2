"""Discovery: finds peers by seeds, DNS and peers of an earlier life, and its own address."""
