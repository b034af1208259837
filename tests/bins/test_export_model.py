"""The command that writes what speaking needs."""

import pytest
import torch
from safetensors.torch import load_file

from models.checkpoint.loading import load_model
from models.voices import voices_in
from tests.commands import call
from tests.models.programs.export.voices import make_flow_voice
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError

HALF, MIXED = {torch.float16, torch.int64}, {torch.int8, torch.float32, torch.float16, torch.int64}


@pytest.mark.parametrize(("weights", "types"), [("fp16", HALF), ("int8", MIXED)])
def test_an_export_is_a_model_with_a_card_of_its_own_name(tmp_path, weights, types):
    voice, target = make_voice(tmp_path / "voice"), tmp_path / "small"
    call("export_model", voice, target, "--weights", weights, "--license", "mit")
    stored = {t.dtype for t in load_file(target / "model.safetensors").values()}
    assert stored | {torch.int64} == types
    card = (target / "README.md").read_text()
    assert "# small\n" in card
    assert 'license: "mit"' in card
    assert [voice.licence for voice in voices_in(tmp_path) if voice.name == "small"] == ["mit"]
    whole, short = (load_model(folder).network.state_dict() for folder in (voice, target))
    for name, tensor in whole.items():
        atol = 1e-3 if weights == "fp16" else tensor.abs().max().item() / 250
        torch.testing.assert_close(short[name], tensor, atol=atol, rtol=1e-3)


@pytest.mark.parametrize(("weights", "error"), [("fp16", 1e-3), ("int8", 0.03)])
def test_a_flow_in_fewer_bits_speaks_nearly_the_same(tmp_path, weights, error):
    voice, target = make_flow_voice(tmp_path / "voice"), tmp_path / "small"
    call("export_model", voice, target, "--weights", weights)
    ids = torch.arange(1, 40)[None]
    speech = {"durations": torch.full_like(ids, 5), "temperature": 1.0}
    networks = (load_model(folder).network for folder in (voice, target))
    whole, short = (network.infer(ids, torch.tensor([39]), **speech).mel for network in networks)
    assert 0 < (short - whole).abs().mean() < error * whole.std()


def test_without_a_type_the_weights_are_the_same_bytes(tmp_path):
    voice, target = make_voice(tmp_path / "voice"), tmp_path / "deep" / "copy"
    call("export_model", voice, target)
    name = "model.safetensors"
    assert (target / name).read_bytes() == (voice / name).read_bytes()


def test_it_writes_over_nothing(tmp_path):
    voice = make_voice(tmp_path / "voice")
    before = sorted(path.name for path in voice.iterdir())
    for target in ("voice", "voice/.", "voice/.."):
        with pytest.raises(InputError, match="exists and is not empty"):
            call("export_model", voice, tmp_path / target)
        assert sorted(path.name for path in voice.iterdir()) == before
