"""Weights on disk and on the Hub: loading, importing, publishing."""

from models.checkpoint.loading import LoadedModel, OpenedModel, load_model, open_model

__all__ = ["LoadedModel", "OpenedModel", "load_model", "open_model"]
