import pytest
from accelerate.state import AcceleratorState

from processors.dataset.store import MelWavStore
from tests.models.vocoder.small_hifigan import make_recordings


@pytest.fixture
def store(tmp_path) -> MelWavStore:
    """Recordings for a trainer, which is the first in its process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    return make_recordings(tmp_path / "data")
