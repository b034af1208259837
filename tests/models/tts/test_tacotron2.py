from dataclasses import replace
from functools import partial

import pytest
import torch

from models.base.assets import Assets
from models.tts.tacotron2 import Tacotron2, Tacotron2Task
from models.tts.tacotron2.config import DecoderConfig, EncoderConfig, PostNetConfig, Tacotron2Config
from models.tts.tacotron2.network import _prenet_masks
from modules.layers.basic import length_mask
from modules.losses import guided_attention_sum
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.tts import batches
from tests.models.tts.batches import FLOOR, MEL, N_MELS, N_PHONES, losses_of, mean_loss
from utils.errors import InputError

SMALL = Tacotron2Config(
    encoder=EncoderConfig(hidden=16, dropout=0.0),
    decoder=DecoderConfig(16, 24, 20, 8, 4, 5, attention_dropout=0.0, decoder_dropout=0.0),
    postnet=PostNetConfig(channels=16, n_layers=3, dropout=0.0),
)
GROUPS = replace(SMALL, decoder=replace(SMALL.decoder, n_frames_per_step=3))
VARIANTS = {"one frame per step": SMALL, "three": GROUPS}


def network_of(config: Tacotron2Config = SMALL, n_speakers: int = 1) -> Tacotron2:
    torch.manual_seed(0)
    network = Tacotron2(config, N_PHONES, MEL, n_speakers)
    for parameter in network.decoder.parameters():
        parameter.data *= 2  # attention and gate move
    network.decoder.gate_linear.bias.data.fill_(-2.0)
    return network


def task_of(network: Tacotron2) -> Tacotron2Task:
    return Tacotron2Task(network, Assets(MelConfig()))


def batch_of(
    phone_lengths: tuple[int, ...] = (7, 4, 6), mel_lengths: tuple[int, ...] = (14, 11, 16)
) -> TtsBatch:
    frames = torch.tensor(mel_lengths)
    mask = length_mask(frames)
    B, T = mask.shape
    mel = torch.randn(B, N_MELS, T, generator=torch.Generator().manual_seed(0))
    return batches.batch_of(phone_lengths)._replace(
        durations=None,
        mel=mel.masked_fill(~mask[:, None], FLOOR),
        mel_lengths=frames,
        f0=torch.zeros(B, T),
        energy=torch.zeros(B, T),
    )


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_a_batch_speaks_as_its_items_do_alone(config):
    network = network_of(config).eval()
    batch = batch_of()
    limits = torch.tensor([9, 40, 40])
    together = network.infer(batch.phone_ids, batch.phone_lengths, max_frames=limits, seed=3)
    assert len({*together.mel_lengths.tolist()}) > 1
    for item, length in enumerate(batch.phone_lengths):
        ids, limit = batch.phone_ids[item : item + 1, :length], limits[item : item + 1]
        alone = network.infer(ids, length[None], max_frames=limit, seed=3)
        T = int(alone.mel_lengths)
        assert together.mel_lengths[item] == T
        assert together.stopped[item] == alone.stopped[0]
        torch.testing.assert_close(together.mel[item, :, :T], alone.mel[0], rtol=1e-4, atol=1e-5)
        assert (together.mel[item, :, T:] == FLOOR).all()
        assert together.durations[item, :length].tolist() == alone.durations[0].tolist()
        torch.testing.assert_close(together.alignment[item, :T, :length], alone.alignment[0])
        assert together.alignment[item, T:].sum() == together.alignment[item, :, length:].sum() == 0


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_speaking_the_true_frames_gives_the_mel_of_training(config):
    """Free decoding, whose inputs are its own frames, equals teacher forcing with these frames."""
    network, batch = network_of(config).eval(), batch_of((6,), (12,))
    phones = batch.phone_ids, batch.phone_lengths
    spoken = network.infer(*phones, max_frames=torch.tensor([12]), gate_threshold=1.0)
    memory = network.encoder(network.phone_embedding(phones[0]), phones[1])
    raw = torch.full((1, 12, N_MELS), 0.0)
    for _ in range(12):  # one more step is right in every round
        masks = _prenet_masks(config, *phones)
        output = network.decoder(memory, length_mask(phones[1]), raw, masks)
        raw = output.mel_hat.detach()
    frame_mask = length_mask(torch.tensor([12]))
    refined = network.postnet(raw, frame_mask).mT
    torch.testing.assert_close(spoken.mel, refined, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(spoken.alignment, output.alignment, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("config", "last_steps"), [(SMALL, (13, 10, 15)), (GROUPS, (12, 9, 15))])
def test_losses_are_sums_over_valid_frames(config, last_steps):
    batch, network = batch_of(), network_of(replace(config, guided_attention=2.0)).eval()
    with torch.no_grad():
        output = network(batch)
    expected = dict.fromkeys(("mel", "refined_mel", "gate", "focus"), 0.0)
    for item, (T, last) in enumerate(zip(batch.mel_lengths.tolist(), last_steps, strict=True)):
        mel = batch.mel[item, :, :T].T
        expected["mel"] += float((output.mel_hat[item, :T] - mel).square().mean(dim=1).sum())
        refined = output.refined_mel_hat[item, :T]
        expected["refined_mel"] += float((refined - mel).square().mean(dim=1).sum())
        expected["focus"] += float(output.alignment[item, :T].max(dim=1).values.sum())
        opened = output.gate_logits[item, :T].sigmoid()
        expected["gate"] -= float((1 - opened[:last]).log().sum() + opened[last:].log().sum())
    expected["guided_attention"] = float(
        guided_attention_sum(output.alignment, batch.phone_lengths, batch.mel_lengths)
    )
    losses = task_of(network).validation_step(batch)
    assert {name: term.total.item() for name, term in losses.items()} == pytest.approx(expected)
    assert {term.per for term in losses.values()} == {"frames"}
    assert (losses["guided_attention"].weight, losses["focus"].weight) == (2.0, 0.0)
    plain = task_of(network_of(config)).validation_step(batch)
    assert plain.keys() == losses.keys() - {"guided_attention"}


def test_normalised_mels_are_those_of_a_plain_network_on_other_mels():
    """The network of (mel - mean) / std predicts std * mel + mean."""
    plain, batch = network_of().eval(), batch_of()
    scaled = network_of(replace(SMALL, mel_mean=-5.5, mel_std=2.0)).eval()
    of_plain, of_scaled = plain(batch), scaled(batch._replace(mel=batch.mel * 2 - 5.5))
    for name in ("mel_hat", "refined_mel_hat"):
        expected = getattr(of_plain, name) * 2 - 5.5
        torch.testing.assert_close(getattr(of_scaled, name), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_scaled.alignment, of_plain.alignment, rtol=1e-5, atol=1e-5)
    phones, limits = batch[1:3], batch.mel_lengths
    spoken, wanted = (network.infer(*phones, max_frames=limits) for network in (scaled, plain))
    assert spoken.mel_lengths.equal(wanted.mel_lengths)
    T = int(wanted.mel_lengths[0])
    expected = wanted.mel[0, :, :T] * 2 - 5.5
    torch.testing.assert_close(spoken.mel[0, :, :T], expected, rtol=1e-4, atol=1e-4)


def test_weights_of_another_normalisation_are_not_those_of_mels():
    """Fine-tuning copies the tensors whose scales agree."""
    plain, scaled = network_of(), network_of(replace(SMALL, mel_mean=-5.5, mel_std=2.0))
    assert plain.scales() == network_of().scales()
    assert all(plain.scales()[name] != scale for name, scale in scaled.scales().items())
    sizes = {name for name, tensor in plain.state_dict().items() if N_MELS in tensor.shape}
    assert sizes <= scaled.scales().keys()


def test_dropped_frames_are_not_read_in_training():
    dropped = replace(SMALL.decoder, frame_dropout=1 - 1e-9)
    network, batch = network_of(replace(SMALL, decoder=dropped)), batch_of()

    def mel_hat(mel: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # the prenet's dropout
        return network(batch._replace(mel=mel)).mel_hat

    assert mel_hat(batch.mel).equal(mel_hat(batch.mel + 1))
    network.eval()
    assert not mel_hat(batch.mel).equal(mel_hat(batch.mel + 1))


def test_dropout_of_the_prenet_differs_in_training_and_follows_the_seed_outside():
    network, batch = network_of(), batch_of()
    for mode, same in ((True, False), (False, True)):
        network.train(mode)
        first, second = (network(batch).mel_hat for _ in range(2))
        assert torch.equal(first, second) == same
    speak = partial(network.infer, *batch[1:3], max_frames=torch.tensor([8, 8, 8]))
    assert not torch.allclose(speak(seed=0).mel, speak(seed=1).mel)
    assert torch.equal(*(speak(seed=seed, prenet_dropout=0.0).mel for seed in (0, 1)))


def test_one_batch_can_be_overfitted_and_spoken():
    batch = batch_of((5, 3), (8, 6))
    batch = batch._replace(mel=batch.mel / 4)  # less than the dropout of the prenet can hide
    network = network_of(replace(SMALL, guided_attention=2.0)).train()
    task = task_of(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1.5e-2)
    first = mean_loss(task, batch).item()
    for _ in range(40):
        optimizer.zero_grad()
        loss = mean_loss(task, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    assert loss.item() < 0.2 * first
    spoken = network.eval().infer(batch.phone_ids, batch.phone_lengths, max_decoder_steps=40)
    assert spoken.stopped.all()
    assert spoken.mel_lengths.tolist() == [7, 5]  # without the frame at which the gate opens


def test_int8_on_other_devices_and_a_compiled_loop_are_refused():
    with pytest.raises(InputError, match="int8 is for CPUs, not for meta; use fp16 or fp32"):
        network_of().to("meta").for_inference("int8")
    with pytest.raises(
        InputError, match=r"inference\.compile is dynamic: .* loop .* set it to off"
    ):
        network_of().for_inference(compiled="dynamic")


def test_speech_ends_where_the_gate_opens_or_at_a_limit():
    network = network_of().eval()
    phones = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    gate = network.decoder.gate_linear
    torch.nn.init.zeros_(gate.weight)
    gate.bias.data.fill_(-5.0)
    endless = network.infer(*phones, max_decoder_steps=7)
    assert (endless.mel_lengths.tolist(), endless.stopped.tolist()) == ([7], [False])
    cut = network.infer(*phones, max_frames=torch.tensor([4]))
    assert (cut.mel_lengths.tolist(), cut.stopped.tolist()) == ([4], [False])
    threshold = torch.tensor(-5.0).sigmoid().item()
    assert endless.gate.tolist() == [pytest.approx([threshold] * 7)]
    assert network.infer(*phones, gate_threshold=0.9 * threshold).stopped.tolist() == [True]
    gate.bias.data.fill_(5.0)
    assert network.infer(*phones).mel_lengths.tolist() == [1]  # never nothing


def test_durations_follow_the_attention_and_teacher_forced_mels_have_the_lengths_of_recordings():
    network, batch = network_of().eval(), batch_of()
    spoken = network.infer(batch.phone_ids, batch.phone_lengths, max_frames=batch.mel_lengths)
    assert spoken.durations.sum(dim=1).tolist() == spoken.mel_lengths.tolist()
    assert spoken.pitch is spoken.energy is None
    batches.assert_taught(network, batch, network(batch).refined_mel_hat)


def test_half_precision_has_nearly_the_gradients_of_float32():
    batch, network = batch_of(), network_of().eval()

    def gradients(is_half: bool) -> torch.Tensor:
        network.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_half):
            losses = losses_of(task_of(network), batch)
        sum(term.total for term in losses.values()).backward()
        return torch.cat([p.grad.flatten() for p in network.parameters()])

    exact = gradients(is_half=False)
    assert (gradients(is_half=True) - exact).norm() < 0.05 * exact.norm()


def test_samples_show_the_attention():
    network = Tacotron2(SMALL, len(arpabet_vocabulary()), MelConfig()).eval()
    batch = batch_of((5,), (2,))
    task = Tacotron2Task(network, Assets(MelConfig(), arpabet_vocabulary()))
    (sample,) = task.samples(batch)
    assert {*sample.figures} == {"mel", "attention"}
    assert len(sample.phones) == 5
    assert len(sample.figures["attention"]().axes) == 2  # and the gate
