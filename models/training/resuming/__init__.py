"""Continuing a run: its state in a checkpoint, and what may have changed since."""
