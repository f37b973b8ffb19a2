"""Exchange: anti-entropy between two nodes: opener, answerer, frames, and transfer of pieces."""
