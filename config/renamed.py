"""Keys that had another name: old configurations and experiments hold them, and load."""

from collections.abc import Container
from functools import cache
from pathlib import Path

from utils.config import SET, Keys, Tree
from utils.logging import get_logger

# The present name, by top-level section and former name
RENAMED = {
    ("preprocess", "win_size"): "win_length",
    ("preprocess", "hop_size"): "hop_length",
    ("preprocess", "n_mel"): "n_mels",
    ("preprocess", "fmin"): "f_min",
    ("preprocess", "fmax"): "f_max",
    ("model", "layers"): "n_layers",
    ("model", "encoder_layer"): "n_encoder_layers",
    ("model", "decoder_layer"): "n_decoder_layers",
}


def with_present_names(tree: Tree, known_paths: Container[Keys]) -> Tree:
    """The tree with renamed keys under their present names, unless the model has the former one.

    Logs one line for each that the user wrote: none for those in `config.json` of an experiment.
    """
    for keys, origin in list(tree.origins.items()):
        new = RENAMED.get((keys[0], keys[-1]), "")
        if keys not in known_paths and (*keys[:-1], new) in known_paths:
            tree = tree.renamed(keys, new)
            if Path(origin).name != "config.json":
                _log_once(origin, ".".join(keys), new)
    return tree


@cache
def _log_once(origin: str, key: str, new: str) -> None:
    where = f"{SET} {key}" if origin == SET else f"{origin}: {key}"
    get_logger(__name__).warning("%s is now called %s; the old name still works", where, new)
