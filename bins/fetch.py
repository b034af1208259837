"""Stage 0: fetches the corpora of an experiment."""

from bins._flags.parsers import arguments
from utils.cli import run
from utils.logging import get_logger


def main(argv: list[str] | None = None) -> None:
    """Fetches each dataset of the config that is published as an archive."""
    flags = arguments("fetch", argv)
    from models.base.registry import load_config
    from preprocessors.corpora import archive_of, dataset_folder, fetch_archive

    log = get_logger(__name__)
    config = load_config(flags.config, flags.set)
    for dataset in config.dataset:
        archive = archive_of(dataset, config.preprocess.corpus_of(dataset))
        folder = dataset_folder(dataset, config.dataset_path)
        if archive:
            fetch_archive(archive, folder)
        else:
            is_there = folder.is_dir() and next(folder.iterdir(), None) is not None
            verb = "its recordings are read from" if is_there else "put its recordings into"
            log.info("%s: nothing to fetch; %s %s", dataset, verb, folder)


if __name__ == "__main__":
    run(main)
