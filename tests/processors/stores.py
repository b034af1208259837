"""Stores for tests: written shard by shard, and compared with their checksums."""

from collections.abc import Sequence
from pathlib import Path

from modules.mel import MelConfig
from processors.dataset.store import (
    FeatureStore,
    IndexRow,
    MelWavStore,
    checksum,
    shard_path,
    shard_writer,
    tensors_of,
    write_index,
    write_mel_config,
)
from processors.extraction.fingerprint import Fingerprint, write_fingerprint
from processors.records import Features, MelWav
from utils.errors import InputError


def write_shard(
    path: Path, records: Sequence[Features] | Sequence[MelWav], mel: MelConfig
) -> list[IndexRow]:
    """Writes one shard and gives its rows of the index."""
    with shard_writer(path, [record.id for record in records], mel) as writer:
        for record in records:
            writer.add(record)
    return writer.rows


def write_store(
    folder: Path, mel: MelConfig, *shards: Sequence[Features] | Sequence[MelWav]
) -> Path:
    """Writes what a store reads, with these records in its shards."""
    rows: list[IndexRow] = []
    for number, records in enumerate(shards):
        rows += write_shard(shard_path(folder, f"shard-{number:05d}"), records, mel)
    write_mel_config(folder, mel)
    write_index(folder, rows)
    return folder


def write_finished(folder: Path, **keys: object) -> None:
    """Marks a dataset's folder as finished, made with these keys of `preprocess`."""
    features = {f"preprocess.{name}": value for name, value in keys.items()}
    write_fingerprint(folder, Fingerprint(features, {}, "", {}))


def damaged_ids(store: FeatureStore | MelWavStore) -> list[str]:
    """Ids of the records that cannot be read, or differ from their checksums."""

    def is_damaged(id: str) -> bool:
        try:
            return checksum(tensors_of(store.read(id))) != store.checksum(id)
        except InputError:
            return True

    return [id for id in store.ids if is_damaged(id)]
