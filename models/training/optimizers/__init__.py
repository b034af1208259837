"""Optimizers: updates, learning rates, and the moving average of the weights."""
