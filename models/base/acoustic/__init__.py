"""What acoustic models share: their output, their training step, the joint aligner."""
