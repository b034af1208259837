"""Keys that had another name: old configurations and experiments hold them, and load."""

from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any

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

    Of both names, the one that was set last counts. One line is logged for each that the user
    wrote: none for those in `config.json` of an experiment.
    """
    origins, order = dict(tree.origins), list(tree.origins)

    def present(section: dict[str, Any], keys: Keys) -> dict[str, Any]:
        """A section, which is below these keys, under present names."""
        values = dict(section)
        for name, value in section.items():
            old = (*keys, name)
            new = (*keys, RENAMED.get((old[0], name), ""))
            if isinstance(value, dict):
                values[name] = present(value, old)
            elif old not in known_paths and new in known_paths:
                del values[name]
                origin = origins.pop(old)
                if new not in order[order.index(old) :]:
                    values[new[-1]], origins[new] = value, origin
                if Path(origin).name != "config.json":
                    _log_once(origin, ".".join(old), new[-1])
        return values

    return Tree(present(dict(tree.values), ()), origins, tree.path)


@cache
def _log_once(origin: str, key: str, new: str) -> None:
    where = f"{SET} {key}" if origin == SET else f"{origin}: {key}"
    get_logger(__name__).warning("%s is now called %s; the old name still works", where, new)
