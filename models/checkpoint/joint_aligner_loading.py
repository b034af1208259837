"""Durations by the aligner that was trained with a voice (models.base.joint_aligner)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from models.base.joint_aligner import (
    ALIGNER,
    JointAligner,
    JointAlignerConfig,
    build_aligner,
    find_durations,
)
from models.checkpoint.hub_files import fetch
from models.checkpoint.loading import LoadedModel, fill_network, load_model
from processors.dataset.batch import collate
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore
from processors.dataset.utterances import FeatureDataset
from processors.records import Features
from utils.errors import InputError


def load_joint_aligner(voice: LoadedModel) -> JointAligner:
    """The aligner of a voice, on the CPU and in eval mode.

    Raises:
        InputError: If it was trained without one, or published without it.
    """
    settings = getattr(voice.config.model, "aligner", None)
    if voice.config.preprocess.aligner != "learned" or not isinstance(settings, JointAlignerConfig):
        raise InputError(
            f"{voice.folder}: it was trained with preprocess.aligner"
            f" {voice.config.preprocess.aligner}, and has no aligner of its own; give a voice that"
            " was trained with learned"
        )
    tensors = voice.stored(ALIGNER)
    path = voice.folder / f"{ALIGNER}.safetensors"
    if tensors is None:
        raise InputError(
            f"{path} is missing, and there are no durations without it: give the experiment as it"
            " was trained, or publish it with --with_discriminators"
        )
    network = build_aligner(settings, voice.assets)
    fill_network(network, tensors, path, "its config.json")
    return network.eval()


def duration_finder(reference: str | Path, folder: Path) -> Callable[[Features], Features]:
    """Adds the durations that a voice's aligner finds to features of what it was trained on.

    Args:
        reference: The voice: an experiment, a checkpoint or a name on the Hub.
        folder: `<processed_dir>/<dataset>`.

    Raises:
        InputError: If the voice has no aligner, does not fit the features or knows not all of their
            speakers; if the features have durations already.
    """
    voice = load_model(fetch(reference, for_training=True))
    aligner, store = load_joint_aligner(voice), FeatureStore(folder, voice.mel)
    if store.timed:
        raise InputError(f"{folder} holds durations of an aligner already; export those")
    vocabulary = voice.assets.required_vocabulary(voice.home)
    speakers = [speaker.name for speaker in voice.speakers]
    items = FeatureDataset([store], [store.ids], vocabulary, speakers)

    def find(features: Features) -> Features:
        item = items[Draw(0, store.index_of(features.id))]
        durations = find_durations(aligner, collate([item], voice.mel.log_floor_value))
        return replace(features, durations=durations[0].numpy())

    return find
