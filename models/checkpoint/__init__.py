"""Weights on disk and on the Hub: loading, importing, publishing."""

from models.checkpoint.loading import TrainedModel, load_model, open_model

__all__ = ["TrainedModel", "load_model", "open_model"]
