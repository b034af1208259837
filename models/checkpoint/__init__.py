"""Weights on disk and on the Hub: loading, importing, publishing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.checkpoint.loading import TrainedModel, load_model, open_model

__all__ = ["TrainedModel", "load_model", "open_model"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (of any type)
    """Imports PyTorch only when it is needed: commands read the list of voices without it."""
    if name not in __all__:
        raise AttributeError(name)
    from models.checkpoint import loading

    return getattr(loading, name)
