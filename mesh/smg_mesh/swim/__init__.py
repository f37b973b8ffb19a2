"""Who is alive: SWIM with Lifeguard and what we learnt since, without any I/O."""
