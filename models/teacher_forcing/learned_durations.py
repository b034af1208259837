"""Durations by the joint aligner in the checkpoint of a voice."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from models.base.acoustic.joint_aligner import (
    ALIGNER,
    JointAligner,
    build_aligner,
    find_durations,
)
from models.base.registry import model_of
from models.checkpoint.hub_files import fetch
from models.checkpoint.loading import LoadedModel, fill_network, load_model
from models.teacher_forcing.voice_data import VoiceData
from processors.dataset.store import FeatureStore
from processors.records import Features
from utils.errors import InputError


def load_joint_aligner(voice: LoadedModel) -> JointAligner:
    """Loads the joint aligner of a voice, on the CPU and in eval mode.

    Raises:
        InputError: If the voice was trained or published without one.
    """
    section = model_of(voice.config).aligner
    if voice.config.preprocess.aligner != "learned" or section is None:
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
    network = build_aligner(section(voice.config.model), voice.assets)
    fill_network(network, tensors, path, "its config.json")
    return network.eval()


def duration_finder(reference: str | Path, folder: Path) -> Callable[[Features], Features]:
    """Returns a function that adds durations to features of the data that a voice was trained on.

    Args:
        folder: `<processed_dir>/<dataset>`.

    Raises:
        InputError: If the voice has no aligner, or does not fit the features or their speakers; if
            the features already have durations.
    """
    voice = load_model(fetch(reference, for_training=True))
    aligner, store = load_joint_aligner(voice), FeatureStore(folder, voice.mel)
    if store.timed:
        raise InputError(f"{folder} holds durations of an aligner already; export those")
    data = VoiceData(voice, store)

    def find(features: Features) -> Features:
        durations = find_durations(aligner, data.batch([features.id]))
        return replace(data.features(features.id), durations=durations[0].numpy())

    return find
