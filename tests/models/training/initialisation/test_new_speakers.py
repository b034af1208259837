import pytest
import torch
from accelerate.state import AcceleratorState

from models.base.registry import load_config
from models.checkpoint.loading import load_model
from models.training.experiment import train
from tests.models.training.small_tasks import make_processed, write_voice_config
from utils.errors import InputError

POSTNET = "model.use_postnet=true"  # its running statistics must stay, too


def voice_of(root, speakers):
    """A short training on the data of some speakers; returns its folder."""
    make_processed(root / "data" / "mini", speakers=speakers)
    AcceleratorState._reset_state(reset_partial_state=True)
    train(load_config(write_voice_config(root, max_steps=2), [POSTNET]), "voice")
    return root / "ckpts" / "voice"


def add_speaker(root, voice, *overrides, speaker="cara", **flags):
    """Trains only the rows of a speaker on new data; returns the extended voice's folder."""
    make_processed(root / "data" / "mini", speakers=(speaker,))
    AcceleratorState._reset_state(reset_partial_state=True)
    config = load_config(
        write_voice_config(root, max_steps=3), [POSTNET, "train.trained=speakers", *overrides]
    )
    train(config, "extended", init_from=None if voice is None else str(voice), **flags)
    return root / "ckpts" / "extended"


def speak(model, speaker):
    ids = torch.tensor([[8, 9, 10, 11]])
    return model.network.infer(ids, torch.tensor([4]), speaker_ids=torch.tensor([speaker])).mel


@pytest.mark.parametrize("speakers", [("anna",), ("anna", "ben")])
def test_other_speakers_stay_bit_equal_and_the_new_one_differs(tmp_path, speakers):
    old = voice_of(tmp_path / "old", speakers)
    new = add_speaker(tmp_path / "new", old)
    before, after = load_model(old), load_model(new)

    assert [s.name for s in after.speakers] == [*speakers, "cara"]
    for number in range(len(speakers)):
        assert torch.equal(speak(before, number), speak(after, number))
        assert not torch.equal(speak(after, number), speak(after, len(speakers)))
    start = after.network.speaker_embedding.weight[:-1].mean(dim=0)
    assert not torch.equal(after.network.speaker_embedding.weight[-1], start)  # it has learned


def test_statistics_of_the_new_speaker_are_those_of_the_data(tmp_path):
    old = voice_of(tmp_path / "old", ("anna",))
    after = load_model(add_speaker(tmp_path / "new", old))

    means = [after.stats.speakers[name].f0_phone.mean for name in ("anna", "cara")]
    assert after.network.pitch.norm.mean.tolist() == pytest.approx(means)


def test_resumed_training_still_changes_only_the_new_speaker(tmp_path):
    old = voice_of(tmp_path / "old", ("anna", "ben"))
    add_speaker(tmp_path / "new", old)
    longer = add_speaker(tmp_path / "new", None, "train.max_steps=5", resume=True)
    before, after = load_model(old), load_model(longer)

    assert after.step == 5
    assert torch.equal(speak(before, 1), speak(after, 1))


def test_a_speaker_of_the_voice_is_refused(tmp_path):
    old = voice_of(tmp_path / "old", ("anna", "ben"))
    with pytest.raises(InputError, match="ben is a speaker of the voice already"):
        add_speaker(tmp_path / "new", old, speaker="ben")


def test_without_a_voice_it_is_refused(tmp_path):
    with pytest.raises(InputError, match="name it by --init_from"):
        add_speaker(tmp_path / "new", None)


def test_weight_decay_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"adam.weight_decay is 0.1, which would change all"):
        add_speaker(tmp_path / "new", None, "train.adam.weight_decay=0.1")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.use_postnet=false"], r"only in the voice: postnet\..*model section of its config"),
        (["model.variance_embedding.pitch_quantization=log"], r"only in this config: pitch\.edges"),
    ],
)
def test_another_network_than_that_of_the_voice_is_refused(tmp_path, overrides, message):
    old = voice_of(tmp_path / "old", ("anna",))
    with pytest.raises(InputError, match=message):
        add_speaker(tmp_path / "new", old, *overrides)
