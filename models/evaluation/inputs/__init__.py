"""Inputs of stage 4: systems, the references of their utterances, and checks before the work."""
