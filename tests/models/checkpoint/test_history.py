from dataclasses import replace
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard

from config.preprocess import CorpusConfig
from models.base.assets import Assets, Speaker
from models.base.registry import load_config
from models.checkpoint import history as cards
from preprocessors.manifest import Origin
from tests.models.training.small_tasks import write_voice_config
from utils.errors import InputError
from utils.files import write_json

FOUND = cards.History(
    hours={"mini": 0.5},
    initialised_from="org/name@0123",
    not_imported=("a", "b"),
    step=4,
    losses={"mel": 0.25},
)

HUB = "org/name@" + "0" * 40


def test_a_history_comes_back_without_what_was_measured_on_other_weights(tmp_path):
    FOUND.save(tmp_path)
    assert cards.History.load(tmp_path) == FOUND
    assert cards.History.load(tmp_path / "none") == cards.History()
    assert FOUND.at(4) == FOUND.at(None) == FOUND
    other = FOUND.at(2)
    assert (other.step, other.losses) == (2, {})
    assert other.hours == FOUND.hours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"step": "many"}', 'step is "many", expected a whole number'),
        ('{"hours": {"mini": null}}', r"hours\.mini is null, expected a number"),
        ('{"not_imported": "a"}', r'not_imported is "a", expected a list \[ ... \]'),
        ("", "not JSON"),
        ("[]", "expected an object; remove the file"),
    ],
)
def test_something_else_of_that_name_is_refused(tmp_path, text, message):
    (tmp_path / "history.json").write_text(text)
    with pytest.raises(InputError, match=rf"history\.json: {message}"):
        cards.History.load(tmp_path)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({}, {}),
        ({"mels_from": "my_voice"}, {"mels_from": "my_voice"}),
        ({"origin": {"spoken_by": "Toy 1", "licence": ""}}, {"origins": {"a": Origin("Toy 1")}}),
    ],
)
def test_hours_and_origins_are_from_the_report_of_stage_1(tmp_path, report, expected):
    write_json(tmp_path / "a" / "report.json", {"hours": 23.9, "utterances": 3} | report)
    config = SimpleNamespace(dataset=("a", "b"))
    history = cards.history_of(config, [tmp_path / "a", tmp_path / "b"])
    assert history == cards.History(hours={"a": 23.9}, **expected)
    history.save(tmp_path)
    assert cards.History.load(tmp_path) == history


@pytest.fixture
def voice(tmp_path):
    config = load_config(write_voice_config(tmp_path, "LJSpeech"))
    speakers = (Speaker("LJSpeech", "en-us"), Speaker("anna|b", "de"))
    history = cards.History(hours={"LJSpeech": 23.914}, step=900, losses={"mel": 0.51239})
    assets = Assets(config.preprocess.mel, speakers=speakers)
    return cards.Card("ckpts/voice", config, assets, history)


def header_of(text):
    """As the Hub's own client reads it."""
    return ModelCard(text).data.to_dict()


def test_the_header_is_what_the_hub_reads(voice):
    assert header_of(cards.card_text(voice)) == {
        "license": "unknown",
        "recordings_license": ["public domain"],
        "language": ["de", "en"],
        "tags": ["text-to-speech", "arion", "fastspeech2"],
        "library_name": "arion",
        "pipeline_tag": "text-to-speech",
        "datasets": ["keithito/lj_speech"],
    }
    history = replace(voice.history, initialised_from=f"{HUB}, 5 updates", licence="cc-by-4.0")
    header = header_of(cards.card_text(replace(voice, history=history)))
    assert header["license"] == "cc-by-4.0"
    assert header["base_model"] == "org/name"
    config = replace(voice.config, model_type='A: "b"\n---')  # nothing breaks the header
    assert header_of(cards.card_text(replace(voice, config=config)))["tags"][2] == 'a: "b"\n---'


def test_a_model_of_generated_data_names_no_corpus(voice):
    config = replace(voice.config, train=replace(voice.config.train, synthetic_utterances=4))
    assert "datasets" not in header_of(cards.card_text(replace(voice, config=config)))
    assert cards.licences_of(config, voice.history) == {}


def test_the_table_says_what_it_was_made_of(voice):
    text = cards.card_text(replace(voice, scores=("wer 0.1235", "vocoder v2")))
    for part in (
        "# voice\n",
        "FastSpeech2, a voice, trained with Arion for 900 updates.",
        "| data | LJSpeech, 23.91 hours, licence of the recordings: public domain |",
        "| speakers | 2: LJSpeech, anna\\|b |",
        "| audio | 8000 Hz |",
        "| mel | 8 bands, 0 to 4000 Hz, n_fft 256, window 256, hop 64, padding centre, natural",
        "| validation | mel 0.5124 |",
        "| scores | wer 0.1235; vocoder v2 |",
        'Synthesizer("ckpts/voice")("Any text.")',
    ):
        assert part in text
    for absent in ("initialised", "mels |", "not imported", "None"):
        assert absent not in text


def test_a_vocoders_card_says_whose_mels_it_saw_and_how_to_use_it(voice):
    config = replace(voice.config, task="vocoder", model_type="HiFiGAN")
    history = cards.History(mels_from="my_voice, 900 updates", initialised_from="v2, 100 updates")
    text = cards.card_text(replace(voice, name="org/v2", config=config, history=history))
    assert header_of(text)["tags"] == ["vocoder", "arion", "hifigan"]
    assert "language" not in header_of(text)
    assert "| mels | predicted by my_voice, 900 updates from the true durations" in text
    assert "| initialised from | v2, 100 updates |" in text
    assert 'vocoder="org/v2")' in text
    assert 'load_model("org/v2").network.infer(mel)  # (B, 8, T) -> (B, T * 64)' in text


def test_an_imported_models_card_says_whose_it_is_and_what_was_left_out(voice):
    history = cards.History(imported_from="HiFi-GAN of somebody", not_imported=("a", "b"), step=7)
    text = cards.card_text(replace(voice, history=history))
    assert "A voice: HiFi-GAN of somebody; imported into Arion by" in text
    assert "trained with Arion" not in text
    assert "| updates | 7 |" in text
    assert "| not imported | a; b |" in text


CC0, PROGRAM = CorpusConfig(licence="CC0"), Origin("Toy 1", "apache-2.0")


@pytest.mark.parametrize(
    ("corpora", "origins", "licences"),
    [
        ({"b": CC0}, {}, {"a": "", "b": "CC0"}),
        ({}, {"a": PROGRAM}, {"a": "apache-2.0", "b": ""}),
        ({"a": CC0}, {"a": PROGRAM}, {"a": "CC0", "b": ""}),
        ({}, {}, {"LJSpeech": "public domain"}),
        # the licence of the published corpus is not that of a program's corpus of the same name
        ({}, {"LJSpeech": Origin("Toy 1", "")}, {"LJSpeech": ""}),
    ],
)
def test_licences_are_of_the_config_or_the_program_that_spoke(voice, corpora, origins, licences):
    preprocess = replace(voice.config.preprocess, corpus=corpora)
    config = replace(voice.config, dataset=tuple(licences), preprocess=preprocess)
    history = cards.History(hours=dict.fromkeys(origins, 2.0), origins=origins)
    text = cards.card_text(replace(voice, config=config, history=history))
    assert cards.licences_of(config, history) == licences
    datasets = []
    for name, licence in licences.items():
        spoken = ", 2.00 hours, spoken by Toy 1" if name in origins else ""
        datasets.append(f"{name}{spoken}, licence of the recordings: {licence or 'unknown'}")
    assert f"| data | {'; '.join(datasets)} |" in text
    assert header_of(text).get("recordings_license", []) == [*filter(None, licences.values())]
    assert ("datasets" in header_of(text)) == ("LJSpeech" in licences and not origins)


def test_notes_are_kept_when_the_card_is_written_again(voice, tmp_path):
    cards.write_card(tmp_path, voice)
    path = tmp_path / "README.md"
    assert "\n## Notes\n\nThe licence of the recordings" in path.read_text()
    path.write_text(path.read_text() + "\n## More\n\nAnna has agreed.\n")
    cards.write_card(tmp_path, replace(voice, history=cards.History(step=901)))
    text = path.read_text()
    assert text.endswith("limit its use.\n\n## More\n\nAnna has agreed.\n")
    assert text.count("## Notes") == 1
    assert "901 updates" in text


def test_the_history_holds_the_licences_of_the_weights_and_of_the_recordings(voice, tmp_path):
    corpus = {name: CorpusConfig(licence="CC0") for name in ("a", "b")} | {"c": CorpusConfig()}
    preprocess = replace(voice.config.preprocess, corpus=corpus)
    config = replace(voice.config, dataset=tuple(corpus), preprocess=preprocess)
    for licence in ("unknown", "mit"):
        history = cards.History(licence=licence)
        cards.write_card(tmp_path, replace(voice, config=config, history=history))
        assert cards.History.load(tmp_path) == replace(history, recordings_licences=("CC0",))
        assert header_of((tmp_path / "README.md").read_text())["license"] == licence


def test_while_training_goes_on_the_card_and_the_history_follow(voice, tmp_path):
    voice = replace(voice, history=replace(FOUND, initialised_from=HUB))
    for losses, expected in [
        ({"mel": 0.1, "pesq": float("nan")}, {"mel": 0.1}),
        ({"score/mcd": 7.5}, {"mel": 0.25, "score/mcd": 7.5}),
        ({"mel": float("nan")}, {}),
        ({}, {"mel": 0.25}),
    ]:
        cards.update_card(tmp_path, voice, cards.Position(step=6, epoch=1), losses)
        history = cards.History.load(tmp_path)
        assert (history.step, history.losses, history.initialised_from) == (6, expected, HUB)
        assert "for 6 updates" in (tmp_path / "README.md").read_text()


def test_the_card_names_the_best_checkpoint_and_says_if_later_ones_are_worse(tmp_path, voice):
    for step, later in ((4, ""), (6, "; later ones are worse")):
        cards.update_card(tmp_path, voice, cards.Position(step, best=0.25, best_step=4), {})
        row = f"| best checkpoint | update 4, by its validation loss of 0.25{later} |"
        assert row in (tmp_path / "README.md").read_text()


def test_a_card_lists_the_marks_that_a_voice_was_not_trained_on(voice):
    some = frozenset(("<sil>", "<,>", "<.>", "AA0"))
    card = replace(voice, assets=replace(voice.assets, trained_phones=some))
    assert "\n| not trained on | `?` `!` |\n" in cards.card_text(card)
    every = some | {"<?>", "<!>"}
    for trained in (every, None):
        card = replace(voice, assets=replace(voice.assets, trained_phones=trained))
        assert "not trained on" not in cards.card_text(card)
