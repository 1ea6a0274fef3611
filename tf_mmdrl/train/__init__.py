"""Training: configuration, the loop, checkpoints that resume exactly."""
