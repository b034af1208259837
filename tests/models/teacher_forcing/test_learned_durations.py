from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from models.base.acoustic.joint_aligner import JointAlignerConfig, build_aligner
from models.base.assets import Assets, Speaker
from models.teacher_forcing.learned_durations import load_joint_aligner
from modules.mel import MelConfig
from processors.text.symbols import arpabet_vocabulary
from utils.errors import InputError

CONFIG = JointAlignerConfig(hidden=4, attention_channels=3)
ASSETS = Assets(MelConfig(), arpabet_vocabulary(), (Speaker("a", "en-us"), Speaker("b", "en-us")))


def voice(tensors, aligner="learned"):
    """A voice whose checkpoint holds these tensors of a joint aligner."""
    config = SimpleNamespace(
        task="tts",
        model_type="FastSpeech2",
        model=SimpleNamespace(aligner=CONFIG),
        preprocess=SimpleNamespace(aligner=aligner),
    )
    stored = {"aligner": tensors}.get
    return SimpleNamespace(folder=Path("voice"), config=config, assets=ASSETS, stored=stored)


def test_the_aligner_has_the_weights_of_the_checkpoint_and_is_in_eval_mode():
    trained = build_aligner(CONFIG, ASSETS).eval()
    found = load_joint_aligner(voice(trained.state_dict()))
    batch = (
        torch.tensor([[3, 4, 5]]), torch.tensor([3]), torch.tensor([1]),
        torch.randn(1, 80, 6), torch.tensor([6]),
    )  # fmt: skip

    assert not found.training
    assert torch.equal(found(*batch), trained(*batch))


def test_a_checkpoint_without_its_aligner_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"voice/aligner\.safetensors is missing, .*--with_disc"):
        load_joint_aligner(voice(None))
    with pytest.raises(InputError, match=r"^voice: trained with preprocess\.aligner hmm, and has"):
        load_joint_aligner(voice(None, aligner="hmm"))


def test_weights_of_another_size_are_refused():
    other = build_aligner(JointAlignerConfig(hidden=5, attention_channels=3), ASSETS)
    with pytest.raises(InputError, match=r"does not fit its config\.json: of another shape: phone"):
        load_joint_aligner(voice(other.state_dict()))
