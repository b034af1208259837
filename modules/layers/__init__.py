"""Layers of several models: convolutions, attention, embeddings, norms, masks."""
