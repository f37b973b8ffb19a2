"""DNS source: a name whose addresses or SRV records are workers, asked again when their time is up."""
