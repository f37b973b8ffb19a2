"""Election: leases of slots, the voters that grant them, and what voters store of minted totals."""
