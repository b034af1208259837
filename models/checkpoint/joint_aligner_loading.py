"""Durations by the joint aligner in the checkpoint of a voice (models.base.joint_aligner)."""

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
from processors.dataset.datasets import FeatureDataset
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore
from processors.records import Features
from utils.errors import InputError


def load_joint_aligner(voice: LoadedModel) -> JointAligner:
    """Loads the joint aligner of a voice, on the CPU and in eval mode.

    Raises:
        InputError: If the voice was trained or published without one.
    """
    settings = getattr(voice.config.model, "aligner", None)
    if voice.config.preprocess.aligner != "learned" or not isinstance(settings, JointAlignerConfig):
        raise InputError(
            f"{voice.folder}: trained with preprocess.aligner {voice.config.preprocess.aligner}, "
            "and has no aligner of its own; give a voice that was trained with learned"
        )
    tensors = voice.stored(ALIGNER)
    path = voice.folder / f"{ALIGNER}.safetensors"
    if tensors is None:
        raise InputError(
            f"{path} is missing, and durations need it; give the experiment that was trained, or"
            " publish it with --with_discriminators"
        )
    network = build_aligner(settings, voice.assets)
    fill_network(network, tensors, path, "its config.json")
    return network.eval()


def duration_finder(reference: str | Path, folder: Path) -> Callable[[Features], Features]:
    """Returns a function that adds durations to features of the data that a voice was trained on.

    Args:
        reference: The voice: an experiment, a checkpoint or a name on the Hub.
        folder: `<processed_dir>/<dataset>`.

    Raises:
        InputError: If the voice has no aligner, or does not fit the features or their speakers; if
            the features already have durations.
    """
    voice = load_model(fetch(reference, for_training=True))
    aligner, store = load_joint_aligner(voice), FeatureStore(folder, voice.mel)
    if store.timed:
        raise InputError(f"{folder} holds durations of an aligner already; export those")
    vocabulary = voice.assets.required_vocabulary(voice.home)
    speakers = [speaker.name for speaker in voice.speakers]
    p_arpabet = voice.config.preprocess.text.certain_p_arpabet
    items = FeatureDataset([store], [store.ids], vocabulary, speakers, p_arpabet=p_arpabet)

    def find(features: Features) -> Features:
        place = Draw(0, store.index_of(features.id))
        durations = find_durations(aligner, collate([items[place]], voice.mel.log_floor_value))
        return replace(items.features(place), durations=durations[0].numpy())

    return find
