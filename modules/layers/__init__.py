"""Layers of several models: masks, convolutions, embeddings, attention, norms."""
