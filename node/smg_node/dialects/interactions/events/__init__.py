"""Events and objects of the Interactions API: the interaction, its steps, and its stream."""
