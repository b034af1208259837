"""Checkpoints, the state that they hold, and the folder of an experiment."""
