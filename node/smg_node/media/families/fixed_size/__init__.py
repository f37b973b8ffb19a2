"""Fixed size: families whose pictures all become one square of the same size, whatever their own."""
