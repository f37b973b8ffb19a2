"""Native size: families whose pictures keep about their own size and shape, in whole patches of the encoder."""
