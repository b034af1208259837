"""Tests of every model; a new one needs no line here, but sizes in `config/tiny`."""

import functools
from collections.abc import Sequence
from typing import Any, get_args

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from config.schema import VocoderPrecision
from models.base.model import TtsOutput
from models.base.task import MetricTerm, Scheduled
from models.training.initialisation import tensors_of
from models.training.trainer import Updater, weighted_mean
from models.tts import fastspeech2
from modules.layers.basic import PhoneEmbedding, SpeakerEmbedding
from modules.layers.postnet import PostNet
from modules.mel import MelSpectrogram
from modules.variance.contours import SpeakerNorm
from tests.models import compiled
from tests.models.compiled import after_backward
from tests.worlds.networks import Subject, item_of, names_of, padded, without_chance
from utils.errors import InputError

CPU = torch.device("cpu")
ACOUSTIC, VOCODERS = names_of("tts"), names_of("vocoder")
LEARNED = ("", "own encoder", "1.0", "one frame per step", "discriminators")  # learn by other ways
# other models, and the tests of compiled synthesis, trace their kinds of layers in less time
SLOW_TO_TRACE = ("fastpitch", "flowspeech", "hifigan", "matcha", "vocos", "waveglow")


@pytest.fixture(autouse=True, scope="module")
def _small_postnet():
    """FastSpeech 2 has five layers of 512 channels whatever its configuration: most of its time."""
    small = functools.partial(PostNet, channels=16, n_layers=2)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(fastspeech2, "PostNet", small)
        yield


def marked(names: list[tuple[str, str]], slow: Sequence[str] = ()) -> Any:
    cases = [
        pytest.param(*name, id=" ".join(name).strip(), marks=[pytest.mark.slow] * (name[0] in slow))
        for name in names
    ]
    return pytest.mark.parametrize(("model", "variant"), cases)


every_model, every_acoustic_model = marked([*ACOUSTIC, *VOCODERS]), marked(ACOUSTIC)
PLAIN = [name for name in (*ACOUSTIC, *VOCODERS) if not name[1]]


@functools.cache
def subject_of(model: str, variant: str = "", n_speakers: int = 1) -> Subject:
    return Subject(model, variant, n_speakers)


def batch_of(subject: Subject, lengths: tuple[int, int] = (14, 14)) -> Any:
    """Three utterances of phones, or two recordings of these lengths in frames."""
    return subject.phones() if subject.config.task == "tts" else subject.recordings(lengths)


def spoken(network: Any, batch: Any, item: int | None = None, **controls: Any) -> Any:
    """Synthesises a batch, or one of its items without padding."""
    if item is not None:
        batch = item_of(batch, item)
    lengths = batch.phone_lengths if hasattr(batch, "phone_lengths") else batch.mel_lengths
    longest = int(lengths.max()) if item is not None else None
    if not hasattr(batch, "phone_ids"):
        return network.infer(batch.mel[:, :, :longest], lengths, seed=3, **controls)
    if "duration" in network.controls:  # long enough for every part
        controls = {"duration_control": 4.0, **controls}
    else:
        controls = {"max_frames": 3 * lengths, "gate_threshold": 1.0, **controls}
    controls.setdefault("speaker_ids", batch.speaker_ids)
    return network.infer(batch.phone_ids[:, :longest], lengths, seed=3, **controls)


def wav_or_mel(output: Any) -> Tensor:
    return output.mel if isinstance(output, TtsOutput) else output


@every_acoustic_model
def test_more_padding_changes_neither_losses_nor_gradients(model, variant):
    subject = subject_of(model, variant, 2)
    batch = subject.phones()
    expected = after_backward(without_chance(subject.task()), batch)
    found = after_backward(without_chance(subject.task()), padded(batch, subject.mel))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@every_model
def test_more_padding_does_not_change_the_validation(model, variant):
    subject = subject_of(model, variant)
    batch = batch_of(subject, (14, 9))
    results = []
    for inputs in (batch, padded(batch, subject.mel)):
        torch.manual_seed(0)
        terms = subject.task().validation_step(inputs)
        results.append({name: float(term.total) for name, term in terms.items()})
    assert results[1] == pytest.approx(results[0], rel=1e-3)


@every_model
def test_an_item_of_a_batch_is_what_it_is_alone(model, variant):
    subject = subject_of(model, variant)
    network, batch = subject.network(), padded(batch_of(subject, (14, 9)), subject.mel)
    together = spoken(network, batch)
    hop = subject.mel.hop_length
    for item in range(len(batch.ids)):
        alone = spoken(network, batch, item)
        if isinstance(alone, TtsOutput):
            T = int(alone.mel_lengths)
            assert together.mel_lengths[item] == T
            N = int(batch.phone_lengths[item])
            assert together.durations[item, :N].tolist() == alone.durations[0, :N].tolist()
            beyond, silence = together.mel[item, :, T:], subject.mel.log_floor_value
            torch.testing.assert_close(
                together.mel[item, :, :T], alone.mel[0], atol=1e-4, rtol=1e-4
            )
            for values, expected in zip(together[3:5], alone[3:5], strict=True):
                if expected is not None:
                    L = expected.shape[1]
                    torch.testing.assert_close(values[item, :L], expected[0], atol=1e-3, rtol=1e-4)
                    assert not values[item, L:].any()
        else:
            S = int(batch.mel_lengths[item]) * hop
            torch.testing.assert_close(together[item, :S], alone[0], atol=1e-5, rtol=1e-4)
            beyond, silence = together[item, S:], 0.0
        assert (beyond == silence).all()


@every_model
def test_every_parameter_gets_a_gradient(model, variant):
    subject = subject_of(model, variant, 2)
    task, is_acoustic = subject.task(), subject.config.task == "tts"
    for network in task.networks.values():
        network.train()
    if isinstance(task, Scheduled):
        task.begin_update(10**6)  # all losses count
    # the gradient of an L1 loss can be 0 for one batch: as many errors are positive as negative
    batches = [subject.phones(seed) for seed in (0, 1)] if is_acoustic else [subject.recordings()]
    gradients = [after_backward(task, batch)[1] for batch in batches]
    normalised = [
        name.rpartition(".")[0]
        for network in task.networks.values()
        for name, module in network.named_modules()
        if "BatchNorm" in type(module).__name__
    ]
    for key, network in task.networks.items():
        for name, parameter in network.named_parameters():
            if not parameter.requires_grad:
                continue
            found = [of_batch.get(f"{key}.{name}") for of_batch in gradients]
            is_valid = [gradient is not None and gradient.isfinite().all() for gradient in found]
            assert all(is_valid), name
            # batch normalisation takes out what a bias before it adds
            parent = name.split(".convs.")[0]
            is_taken_out = any(norm.startswith(parent) for norm in normalised)
            # and a hinge loss of small scores that of recorded and of generated audio
            is_taken_out = is_taken_out or key == "discriminator"
            if not (name.endswith("bias") and is_taken_out):
                assert any(gradient.any() for gradient in found), name


@marked([name for name in (*ACOUSTIC, *VOCODERS) if name[1] in LEARNED])
def test_one_batch_can_be_learned(model, variant):
    subject = subject_of(model, variant)
    batch, task = batch_of(subject), subject.task()
    for network in task.networks.values():
        network.train()
    optimizers = {
        name: torch.optim.Adam(network.parameters(), lr=5e-3)
        for name, network in task.networks.items()
    }
    updater = Updater(task, optimizers, CPU, max_norm=5.0)
    before = validated(task, batch)
    torch.manual_seed(0)
    for update in range(20 * len(task.networks)):
        if isinstance(task, Scheduled):
            task.begin_update(update)
        assert updater.run([batch]).updated == task.networks.keys()
        if update % 5 == 4 and validated(task, batch) < before - 0.1 * abs(before):
            return
    pytest.fail(f"the loss is {validated(task, batch)}, it was {before}")


def validated(task: Any, batch: Any) -> float:
    """The loss that chooses the best checkpoint."""
    for network in task.networks.values():
        network.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        terms = task.validation_step(batch)
    losses = {name: term for name, term in terms.items() if not isinstance(term, MetricTerm)}
    for network in task.networks.values():
        network.train()
    return float(weighted_mean(losses, task.counts(batch)))


@every_model
def test_saving_and_loading_changes_nothing(model, variant, tmp_path):
    subject, path = subject_of(model, variant), tmp_path / "weights.safetensors"
    saved, loaded = subject.network(seed=0), subject.network(seed=1)
    batch = batch_of(subject)
    assert not torch.equal(wav_or_mel(spoken(loaded, batch)), wav_or_mel(spoken(saved, batch)))
    save_file(saved.state_dict(), path)
    loaded.load_state_dict(load_file(path))
    for one, other in zip(spoken(loaded, batch), spoken(saved, batch), strict=True):
        assert torch.equal(one, other) if isinstance(other, Tensor) else one == other


@compiled.by_backend
@marked(PLAIN, slow=SLOW_TO_TRACE)
def test_compiled_for_a_fixed_shape_it_trains_as_it_is(model, variant, monkeypatch, backend):
    compiled.set_backend(monkeypatch, backend)
    subject = subject_of(model, variant)
    batch = batch_of(subject)
    in_its_shape = padded(batch, subject.mel) if subject.config.task == "tts" else batch
    compiled.assert_compiled_as_eager(
        lambda: without_chance(subject.task()), batch, in_its_shape, None
    )


@marked(PLAIN)
def test_bf16_trains_with_float32_losses_close_to_full_precision(model, variant):
    subject = subject_of(model, variant)
    batch = batch_of(subject)
    exact, _ = after_backward(without_chance(subject.task()), batch)
    half, gradients = after_backward(without_chance(subject.task()), batch, half=True)
    assert {loss.dtype for loss in half.values()} == {torch.float32}
    for name, loss in exact.items():
        assert float(half[name]) == pytest.approx(float(loss), rel=0.1, abs=0.5), name
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@every_model
def test_a_network_for_inference_speaks_as_before(model, variant):
    subject = subject_of(model, variant, 2)
    network, batch = subject.network(), batch_of(subject)
    is_acoustic = subject.config.task == "tts"
    plain = spoken(network, batch)
    for precision in network.PRECISIONS if is_acoustic else get_args(VocoderPrecision):
        prepared = network.for_inference(precision)
        found, alone = spoken(prepared, batch), spoken(prepared, batch, 0)
        assert wav_or_mel(found).dtype == torch.float32
        if is_acoustic:
            torch.testing.assert_close(found.durations, plain.durations, rtol=0, atol=0)
            mels = found.mel, plain.mel
        else:
            mels = [MelSpectrogram(subject.mel)(wav) for wav in (found, plain)]
            assert not any(parameter.requires_grad for parameter in prepared.parameters())
        together = wav_or_mel(found)[:1, ..., : wav_or_mel(alone).shape[-1]]
        tolerance = 1e-4 if precision == "fp32" else 0.05
        torch.testing.assert_close(together, wav_or_mel(alone), rtol=0, atol=tolerance)
        error = (mels[0] - mels[1]).abs()
        assert error.max() < 1e-4 if precision == "fp32" else error.mean() < 0.1


@every_acoustic_model
def test_speakers_differ_and_must_be_named(model, variant):
    subject = subject_of(model, variant, 2)
    network, batch = subject.network(), item_of(subject.phones(), 0)
    first, second = (spoken(network, batch, speaker_ids=torch.tensor([n])) for n in (0, 1))
    assert first.mel.shape != second.mel.shape or not torch.allclose(first.mel, second.mel)
    if "pitch" in network.controls:
        assert first.pitch.max() < second.pitch.max()
    with pytest.raises(ValueError, match="a voice of 2 speakers needs speaker_ids"):
        network.infer(batch.phone_ids, batch.phone_lengths)


@pytest.mark.parametrize("mode", ["buckets", pytest.param("dynamic", marks=pytest.mark.slow)])
@marked([name for name in ACOUSTIC if not name[1]], slow=("fastpitch", "matcha"))
def test_compiled_for_inference_it_speaks_as_it_is(model, variant, mode, monkeypatch):
    """Sizes of one bucket share their graphs, of which a text has one or more."""
    compiled.set_backend(monkeypatch, "eager")
    network = subject_of(model, variant).network()
    try:
        fast = network.for_inference("fp32", mode)
    except InputError as error:
        assert f"inference.compile is {mode}: " in str(error)  # noqa: PT017
        return
    counts, n_graphs = torch._dynamo.utils.counters["stats"], []
    before = counts["unique_graphs"]
    # as many frames as bands, 20 of 9 or 10 phones, would become one dynamic size
    for n_items, n_phones in ((3, 11), (3, 6), (3, 7), (1, 11), (1, 6)):
        ids = torch.arange(1, 1 + n_items * n_phones).view(n_items, n_phones) % 7 + 1
        lengths, durations = torch.arange(n_phones, n_phones - n_items, -1), torch.full_like(ids, 2)
        expected, found = (one.infer(ids, lengths, durations=durations) for one in (network, fast))
        torch.testing.assert_close(found[:5], expected[:5], rtol=1e-4, atol=1e-4)
        n_graphs.append(counts["unique_graphs"] - before)
    assert n_graphs[0] > 0
    assert n_graphs == [n_graphs[0] * count for count in (1, 1, 1, 2, 2)]


@every_acoustic_model
def test_rows_of_phones_and_speakers_exist_under_their_names(model, variant):
    subject = subject_of(model, variant, 2)
    network = subject.network()
    state, n_phones = network.state_dict(), len(subject.assets.vocabulary.symbols)
    assert {len(state[name]) for name in tensors_of(network, PhoneEmbedding)} == {n_phones}
    by_speaker = tensors_of(network, SpeakerEmbedding) + tensors_of(network, SpeakerNorm)
    assert {len(state[name]) for name in by_speaker} == {2}
    assert ("pitch.norm.std" in by_speaker) == ("pitch" in network.controls)


@every_acoustic_model
def test_an_utterance_without_voice_trains(model, variant):
    subject = subject_of(model, variant)
    batch = subject.phones()
    task = subject.task()
    losses, _ = after_backward(task, batch._replace(f0=torch.zeros_like(batch.f0)))
    assert all(loss.isfinite() for loss in losses.values())


@every_acoustic_model
def test_the_teacher_forced_mel_does_not_depend_on_the_batch(model, variant):
    subject = subject_of(model, variant)
    network, batch = subject.network(), subject.phones()
    mel = network.teacher_forced_mel(batch)
    assert mel.shape == batch.mel.shape
    assert not mel.requires_grad
    for item, T in enumerate(batch.mel_lengths.tolist()):
        alone = network.teacher_forced_mel(padded(item_of(batch, item), subject.mel))
        torch.testing.assert_close(alone[0, :, :T], mel[item, :, :T], atol=1e-4, rtol=0)
        assert (mel[item, :, T:] == subject.mel.log_floor_value).all()


@marked([name for name in VOCODERS if name[1] in ("", "pairs", "same")])
@pytest.mark.parametrize("chunk_frames", [7, None])
def test_a_vocoder_streams_what_it_synthesises_at_once(model, variant, chunk_frames):
    subject = subject_of(model, variant)
    network, mel = subject.network(), subject.recordings((40,)).mel
    before = mel.clone()
    whole = network.infer(mel, seed=3)
    for given in (mel, iter(mel.split([3, 20, 1, 16], dim=2))):
        pieces = []
        for piece in network.generate(given, chunk_frames, seed=3):
            assert torch.is_grad_enabled()  # for who takes the pieces
            assert not piece.requires_grad
            pieces.append(piece)
        torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=0, atol=1e-5)
    assert torch.equal(mel, before)
    assert list(network.generate(iter([]))) == []


@every_model
def test_a_seed_gives_the_same_speech_whatever_was_drawn_before(model, variant):
    subject = subject_of(model, variant)
    network, batch = subject.network(), batch_of(subject)
    torch.manual_seed(1)
    first = wav_or_mel(spoken(network, batch))
    state = torch.get_rng_state()
    assert torch.equal(wav_or_mel(spoken(network, batch)), first)
    assert torch.equal(torch.get_rng_state(), state)
