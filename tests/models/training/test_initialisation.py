import logging
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from models.base.assets import Assets, Speaker
from models.base.registry import find_model, load_config
from models.checkpoint.loading import load_model
from models.training.data import collect_assets
from models.training.initialisation import initialise, tensors_of
from modules.layers.basic import PhoneEmbedding
from processors.dataset.statistics import CorpusStats
from processors.text.voice_phones import Vocabulary
from tests.models.training.small_tasks import VOICES, make_processed, write_voice_config
from tests.worlds.experiments import train_anew, trained_voice
from utils.errors import InputError
from utils.files import read_json, write_json

# running statistics of the postnet must stay, too
OPTIONS = {
    "FastSpeech2": ["model.use_postnet=true"],
    "FlowSpeech": ["train.ema_decay=0.9"],
    "Matcha": ["model.speaker_size=4"],
}


# with the parts of a FastSpeech 2 that a FlowSpeech has
LIKE_FLOWSPEECH = ("model.variance_predictor.own_encoder=true", "model.harmonics=true")


BOTH = ("anna", "ben")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A voice of anna and ben, who speaks by default."""
    voice = trained_voice(tmp_path_factory.mktemp("trained"), speakers=BOTH, max_steps=2)
    config = read_json(voice / "config.json")
    write_json(voice / "config.json", config | {"inference": {"speaker": "ben"}})
    return voice


@pytest.fixture(scope="module", params=VOICES)
def every_trained(request, tmp_path_factory):
    """One of each model."""
    folder = tmp_path_factory.mktemp(request.param)
    return trained_voice(folder, model=request.param, speakers=BOTH, max_steps=2)


def task_of(trained, *overrides, vocabulary=None, speakers=None, stats=None):
    """A fresh task over the same data, with other symbols or speakers."""
    config = load_config(trained.parents[1] / "exp_config.json", overrides)
    own = collect_assets(config)
    named = own.speakers if speakers is None else tuple(Speaker(s, "en-us") for s in speakers)
    assets = Assets(own.mel, vocabulary or own.vocabulary, named, stats or own.stats)
    torch.manual_seed(5)
    return find_model("tts", config.model_type).task.build(config, assets), assets


def test_every_tensor_of_the_same_model_is_copied(every_trained):
    task, assets = task_of(every_trained)
    transfer = initialise(task, assets, every_trained)
    source = load_model(every_trained).network.state_dict()

    assert all(torch.equal(t, source[n]) for n, t in task.networks["model"].state_dict().items())
    assert (transfer.new, transfer.dropped) == ([], [])


def test_what_a_fastspeech_2_shares_with_a_flowspeech_is_copied(tmp_path, caplog):
    log = "model.variance_embedding.pitch_quantization=log"
    trained = trained_voice(tmp_path, *LIKE_FLOWSPEECH, log, speakers=BOTH, max_steps=2)
    write_voice_config(tmp_path, model="FlowSpeech")
    task, assets = task_of(trained)
    network = task.networks["model"]
    fresh = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with caplog.at_level(logging.WARNING):
        transfer = initialise(task, assets, trained)
    source, copied = load_model(trained).network.state_dict(), network.state_dict()
    own = {name for name in copied if name.startswith(("estimator.", "prior."))}

    assert set(transfer.new) == own | {"pitch.edges"}  # of its bins, which are linear
    dropped = {name.split(".")[0] for name in transfer.dropped}
    assert dropped == {"decoder", "mel_linear", "harmonics", "pitch"}
    assert torch.equal(copied["pitch.edges"], fresh["pitch.edges"])
    for name in copied.keys() - own - {"pitch.edges"}:
        assert torch.equal(copied[name], source[name]), name
    (warning,) = [record.getMessage() for record in caplog.records]
    parts = "decoder, estimator, harmonics, mel_linear, pitch, prior"
    assert f"other weights in {parts}; it is a FastSpeech2, of which only common" in warning


def test_rows_of_phones_are_matched_by_symbol(every_trained, caplog):
    source = load_model(every_trained)
    symbols = source.vocabulary.symbols
    other = Vocabulary([symbols[0], "XX", *symbols[:1:-1]])
    task, assets = task_of(every_trained, vocabulary=other)
    fresh = {name: t.clone() for name, t in task.networks["model"].state_dict().items()}
    with caplog.at_level(logging.INFO):
        transfer = initialise(task, assets, every_trained)
    copied, old = task.networks["model"].state_dict(), source.network.state_dict()
    names = tensors_of(source.network, PhoneEmbedding)

    assert any(name.endswith("phone_embedding.weight") for name in names)
    for name in names:
        assert torch.equal(copied[name][2], old[name][len(symbols) - 1])
        assert torch.equal(copied[name][1], fresh[name][1])
        assert f"{name}: {symbols[1]}" in transfer.dropped
        assert f"{name}: <.>" in transfer.reused
    assert transfer.new == [f"{name}: XX" for name in names]
    listed = ", ".join(transfer.new)
    assert f"{len(names)} new, initialised as without --init_from: {listed}" in caplog.text


def test_phones_of_another_set_begin_as_the_nearest_ones(every_trained):
    source = load_model(every_trained)
    symbols = source.vocabulary.symbols
    other = Vocabulary([*symbols[:8], "ˈɑ", "z", "<_>"])
    task, assets = task_of(every_trained, vocabulary=other)
    transfer = initialise(task, assets, every_trained)
    copied, old = task.networks["model"].state_dict(), source.network.state_dict()
    names = tensors_of(source.network, PhoneEmbedding)

    assert "Z" not in source.assets.known_phones  # S is what was trained
    for name in names:
        assert torch.equal(copied[name][8], old[name][symbols.index("AA1")])
        assert torch.equal(copied[name][9], old[name][symbols.index("S")])
    pairs = ("ˈɑ=AA1", "z=S")
    assert transfer.similar == [f"{name}: {pair}" for name in names for pair in pairs]
    assert transfer.new == [f"{name}: <_>" for name in names]


def test_rows_of_speakers_are_matched_by_name(every_trained):
    source = load_model(every_trained).network
    task, assets = task_of(every_trained, speakers=("ben", "anna"))
    initialise(task, assets, every_trained)
    network = task.networks["model"]

    assert torch.equal(network.speaker_embedding.weight, source.speaker_embedding.weight.flip(0))
    if "pitch" in network.controls:
        assert torch.equal(network.pitch.norm.mean, source.pitch.norm.mean.flip(0))


@pytest.mark.parametrize(("f0_hz", "nearest"), [(90.0, 0), (250.0, 1)])
def test_a_new_speaker_begins_as_the_one_of_nearest_mean_f0(every_trained, f0_hz, nearest):
    source = load_model(every_trained)
    stats = source.assets.stats.speakers["anna"]
    voice = Path(shutil.copytree(every_trained, every_trained.with_name(f"low_{f0_hz:g}")))
    with_f0 = {
        name: replace(stats, f0_frame=replace(stats.f0_frame, mean=mean))
        for name, mean in (("anna", 120.0), ("ben", 180.0), ("cara", f0_hz))
    }
    write_json(voice / "stats.json", CorpusStats(with_f0).to_plain())
    (voice / "manifest.json").unlink()
    task, assets = task_of(voice, speakers=("cara", "ben"), stats=CorpusStats(with_f0))
    transfer = initialise(task, assets, voice)
    rows = task.networks["model"].speaker_embedding.weight

    assert torch.equal(rows[0], source.network.speaker_embedding.weight[nearest])
    assert f"speaker_embedding.weight: cara={('anna', 'ben')[nearest]}" in transfer.similar


def test_tensors_of_other_shapes_are_refused_and_all_named(trained):
    task, assets = task_of(trained, "model.transformer.conv_filter_size=12")

    message = r"tensors of other shapes: .*weight is \(.*\) in that model"
    with pytest.raises(InputError, match=message):
        initialise(task, assets, trained)


def test_tensors_of_only_one_model_are_listed(trained):
    task, assets = task_of(trained, "model.transformer.n_decoder_layers=2")
    transfer = initialise(task, assets, trained)

    assert transfer.new
    assert all(name.startswith("decoder") for name in transfer.new)
    assert transfer.dropped == []


def test_an_encoder_of_prosody_in_only_one_of_both_models_is_warned_of(trained, caplog):
    other = trained.with_name("other")
    own_encoder = "model.variance_predictor.own_encoder=true"
    train_anew(trained.parents[1] / "exp_config.json", own_encoder, name="other")
    parts = "duration_predictor, energy, pitch, prosody_encoder"
    for source, overrides, n in ((trained, [own_encoder], 1), (other, [], 1), (trained, [], 0)):
        caplog.clear()
        initialise(*task_of(trained, *overrides), source)
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert len(warnings) == n
        assert all(f"other weights in {parts}; to take" in warning for warning in warnings)


def test_edges_of_bins_on_another_scale_are_not_copied(trained):
    task, assets = task_of(trained, "model.variance_embedding.pitch_quantization=log")
    fresh = task.networks["model"].pitch.edges.clone()
    transfer = initialise(task, assets, trained)

    assert torch.equal(task.networks["model"].pitch.edges, fresh)
    assert (transfer.new, transfer.dropped) == (["pitch.edges"], ["pitch.edges"])


def test_another_mel_definition_is_logged(trained, caplog):
    task, assets = task_of(trained)
    other = replace(assets, mel=replace(assets.mel, padding="hifigan"))
    with caplog.at_level(logging.WARNING):
        initialise(task, other, trained)

    assert "another mel definition: padding centre and hifigan (source and this" in caplog.text


def test_a_new_experiment_starts_from_the_old_weights(trained):
    config = trained.parents[1] / "exp_config.json"
    train_anew(config, "train.adam.lr=1e-9", name="tuned", init_from=str(trained))
    old, new = (load_model(path).network for path in (trained, trained.with_name("tuned")))

    for before, after in zip(old.parameters(), new.parameters(), strict=True):
        assert torch.allclose(before, after, atol=1e-7)


def test_the_default_speaker_of_the_old_voice_is_not_that_of_the_new_one(trained, tmp_path):
    make_processed(tmp_path / "data" / "mini", speakers=("cara",))
    train_anew(write_voice_config(tmp_path, max_steps=1), name="new", init_from=str(trained))
    assert load_model(trained).default_speaker() == "ben"
    new = load_model(tmp_path / "ckpts" / "new")
    assert (new.config.inference.speaker, new.default_speaker()) == ("", "cara")


def test_phones_that_the_old_model_was_trained_on_are_not_forgotten(trained):
    old = Path(shutil.copytree(trained, trained.with_name("old")))
    path = old / "trained_phones.json"
    before = read_json(path)
    write_json(path, [*before, "OY1"])
    (old / "manifest.json").unlink()
    config = trained.parents[1] / "exp_config.json"
    train_anew(config, name="remembering", init_from=str(old))
    assert set(read_json(trained.with_name("remembering") / path.name)) == {*before, "OY1"}


def voice_of(root, speakers, model="FastSpeech2"):
    """A short training on the data of some speakers; returns its folder."""
    return trained_voice(root, *OPTIONS[model], model=model, speakers=speakers, max_steps=2)


def add_speaker(root, voice, *overrides, speaker="cara", model="FastSpeech2", **flags):
    """Trains only the rows of a speaker on new data; returns the extended voice's folder."""
    make_processed(root / "data" / "mini", speakers=(speaker,))
    settings = (*OPTIONS[model], "train.trained=speakers", *overrides)
    flags["init_from"] = None if voice is None else str(voice)
    config = write_voice_config(root, model=model, max_steps=3)
    train_anew(config, *settings, name="extended", **flags)
    return root / "ckpts" / "extended"


def speak(model, speaker):
    ids = torch.tensor([[8, 9, 10, 11]])
    return model.network.infer(ids, torch.tensor([4]), speaker_ids=torch.tensor([speaker])).mel


@pytest.mark.parametrize(
    ("model", "speakers"),
    # a Matcha of one speaker has no channels for more
    [*product(VOICES, [("anna", "ben")]), *product(["FastSpeech2", "FlowSpeech"], [("anna",)])],
)
def test_other_speakers_stay_bit_equal_and_the_new_one_differs(tmp_path, model, speakers):
    old = voice_of(tmp_path / "old", speakers, model)
    new = add_speaker(tmp_path / "new", old, model=model)
    before, after = load_model(old), load_model(new)

    assert [s.name for s in after.speakers] == [*speakers, "cara"]
    for number in range(len(speakers)):
        assert torch.equal(speak(before, number), speak(after, number))
        assert not torch.equal(speak(after, number), speak(after, len(speakers)))
    start = after.network.speaker_embedding.weight[:-1].mean(dim=0)
    assert not torch.equal(after.network.speaker_embedding.weight[-1], start)  # it has learned


def test_speaker_embeddings_start_at_0_where_the_other_voice_has_one_speaker(tmp_path, caplog):
    voice = voice_of(tmp_path, ("anna",))
    stats = load_model(voice).assets.stats.speakers["anna"]
    both = CorpusStats({"anna": stats, "cara": stats})
    task, assets = task_of(voice, *OPTIONS["FastSpeech2"], speakers=("anna", "cara"), stats=both)
    with caplog.at_level(logging.INFO):
        transfer = initialise(task, assets, voice)

    assert not task.networks["model"].speaker_embedding.weight.any()
    assert transfer.at_0 == [f"speaker_embedding.weight: {name}" for name in ("anna", "cara")]
    assert not any("speaker_embedding" in name for name in transfer.new)
    assert "2 speaker embeddings, which start at 0: speaker_embedding.weight: anna, " in caplog.text


def test_statistics_of_the_new_speaker_are_those_of_the_data(tmp_path):
    old = voice_of(tmp_path / "old", ("anna",))
    after = load_model(add_speaker(tmp_path / "new", old))

    means = [after.assets.stats.speakers[name].f0_phone.mean for name in ("anna", "cara")]
    assert after.network.pitch.norm.mean.tolist() == pytest.approx(means)


def test_resumed_training_still_changes_only_the_new_speaker(tmp_path):
    old = voice_of(tmp_path / "old", ("anna", "ben"))
    add_speaker(tmp_path / "new", old)
    longer = add_speaker(tmp_path / "new", None, "train.max_steps=5", resume=True)
    before, after = load_model(old), load_model(longer)

    assert after.step == 5
    assert torch.equal(speak(before, 1), speak(after, 1))


@pytest.mark.parametrize(
    ("has_voice", "speaker", "overrides", "message"),
    [
        (True, "anna", [], "anna is a speaker of the voice already"),
        (False, "cara", [], "name it by --init_from"),
        (False, "cara", ["train.adam.weight_decay=0.1"], "weight_decay is 0.1, which would change"),
        (True, "cara", ["model.use_postnet=false"], "in postnet; use the model section of its con"),
        (True, "cara", ["model.variance_embedding.pitch_quantization=log"], "weights in pitch;"),
    ],
)
def test_speakers_that_cannot_be_added_are_refused(
    tmp_path, has_voice, speaker, overrides, message
):
    old = voice_of(tmp_path / "old", ("anna",)) if has_voice else None
    with pytest.raises(InputError, match=message):
        add_speaker(tmp_path / "new", old, *overrides, speaker=speaker)
