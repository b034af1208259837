"""Pitch, energy and durations of phones: predictors, embeddings, transforms, the regulator."""
