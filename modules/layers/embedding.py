"""Embeddings whose rows have names, by which weights are matched between models."""

from torch import nn


class PhoneEmbedding(nn.Embedding):
    """A vector for each phone of the vocabulary."""


class SpeakerEmbedding(nn.Embedding):
    """A vector for each speaker."""
