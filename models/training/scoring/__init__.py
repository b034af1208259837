"""Validation: losses, and scores of stage 4 during training."""
