"""Networks with their training steps; training, checkpoints, synthesis and evaluation."""
