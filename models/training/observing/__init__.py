"""Validation and scores during training, log lines, curves, samples and profiles."""
