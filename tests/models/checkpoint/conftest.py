"""A discriminator for several importers."""

import pytest
import torch

from models.checkpoint.importers import hifigan_authors
from models.vocoder.hifigan import WaveDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig
from tests.models.checkpoint.importers.hifigan_originals import DISCRIMINATOR


@pytest.fixture
def small_discriminator(monkeypatch):
    """Ours with few channels, as which others are read; the published have 70 million weights."""
    sizes = DiscriminatorConfig(**DISCRIMINATOR)
    monkeypatch.setattr(hifigan_authors, "DiscriminatorConfig", lambda: sizes)
    torch.manual_seed(4)
    return WaveDiscriminator(sizes)
