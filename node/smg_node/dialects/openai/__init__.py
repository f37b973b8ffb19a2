"""What Chat Completions and Completions have in common: parameters, log probabilities, frames."""
