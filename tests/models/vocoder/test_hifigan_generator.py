import pytest
import torch

from models.vocoder.hifigan.config import GeneratorConfig
from models.vocoder.hifigan.generator import HiFiGAN, _cleared, _upsampled, reach_of
from modules.execution.chunks import by_batch

N_MELS, HOP = 8, 12
CONFIGS = {  # kind of block, rates and kernels of the upsampling, channels, kernels and dilations
    "1": GeneratorConfig("1", (4, 3), (8, 5), 16, (3, 5), ((1, 3), (1, 2))),
    "2": GeneratorConfig("2", (3, 4), (3, 10), 16, (3, 7), ((1, 2), (2, 6))),
}


def make_network(config=CONFIGS["1"]):
    """One whose weights are large enough that every sample hears all that it could."""
    torch.manual_seed(0)
    network = HiFiGAN(config, N_MELS).eval()
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            parameter.data.normal_(0, 1.3 / parameter[0].numel() ** 0.5)
    return network


@pytest.fixture(params=CONFIGS)
def network(request):
    return make_network(CONFIGS[request.param])


def make_mel(n_frames, n_items=1):
    return torch.randn(n_items, N_MELS, n_frames, generator=torch.Generator().manual_seed(1))


whole = torch.no_grad()(HiFiGAN.forward)


def test_reach_is_as_far_as_samples_hear_and_no_farther(network):
    reach = network.reach[0]
    mel = make_mel(4 * reach + 1).requires_grad_()
    middle = 2 * reach
    samples = network(mel)[0, middle * HOP : (middle + 1) * HOP]
    heard = torch.zeros(mel.shape[2], dtype=torch.bool)
    for sample in samples:
        (gradient,) = torch.autograd.grad(sample, mel, retain_graph=True)
        heard |= gradient[0].abs().sum(dim=0) > 0
    assert heard.nonzero().flatten().tolist() == list(range(middle - reach, middle + reach + 1))


def test_reach_of_the_networks_of_the_paper():
    # V1, from the end: 3 samples; 60 of the widest block, (63 + 2) // 2 frames of half the rate...
    assert reach_of(GeneratorConfig()) == (13, 10, 14, 47, 32, 3)
    stages, dilations = ((8, 8, 4), (16, 16, 8)), ((1, 2), (2, 6), (3, 12))
    v3 = GeneratorConfig("2", *stages, 256, (3, 5, 7), dilations)
    assert reach_of(v3) == (11, 8, 8, 13, 3)


@pytest.mark.parametrize("n_frames", [1, 2, 5, 11, 16, 17, 40, 100])
@pytest.mark.parametrize("chunk_frames", [1, 7, 16, 30])
def test_pieces_join_up_to_the_whole(network, n_frames, chunk_frames):
    mel = make_mel(n_frames)
    expected = whole(network, mel)
    pieces = list(network.generate(mel, chunk_frames))
    assert torch.cat(pieces, 1).sub(expected).abs().max() < 1e-6
    assert all(piece.shape == (1, chunk_frames * HOP) for piece in pieces[:-1])


def test_less_context_would_be_heard(network, monkeypatch):
    mel = make_mel(60)
    expected = whole(network, mel)
    reach = network.reach
    for i in range(len(reach)):
        monkeypatch.setattr(network, "reach", (*reach[:i], reach[i] - 1, *reach[i + 1 :]))
        wrong = torch.cat(list(network.generate(mel, 4)), 1)
        assert (wrong - expected).abs().max() > 1e-5, i


def test_the_first_piece_comes_before_the_last_is_computed(network, monkeypatch):
    computed, synthesise = [], network._synthesise
    monkeypatch.setattr(
        network, "_synthesise", lambda *given: computed.append(1) or synthesise(*given)
    )
    pieces = network.generate(make_mel(100), chunk_frames=10)
    assert computed == []
    next(pieces)
    assert computed == [1]
    assert len(list(pieces)) + 1 == len(computed) > 5


def test_several_mels_are_generated_together_in_pieces_of_a_frame_or_more(network):
    mel = make_mel(50, n_items=3)
    pieces = list(network.generate(mel, chunk_frames=10))
    assert torch.cat(pieces, 1).sub(whole(network, mel)).abs().max() < 1e-6
    with pytest.raises(ValueError, match="chunk_frames is 0, expected 1 or more"):
        next(network.generate(mel, chunk_frames=0))


@pytest.mark.parametrize("together", [False, True])
def test_items_of_a_batch_are_spoken_as_if_alone(network, monkeypatch, together):
    monkeypatch.setattr(network, "chunk_frames", 16)
    mel, lengths = make_mel(70, n_items=4), torch.tensor([70, 33, 1, 16])
    if together:  # as on a GPU
        with torch.no_grad():
            wav = by_batch(network, mel, lengths, 64, network.reach[0], HOP)
    else:
        wav = network.infer(mel, lengths)
    for item, T in enumerate(lengths.tolist()):
        alone = whole(network, mel[item : item + 1, :, :T])[0]
        assert wav[item, : T * HOP].sub(alone).abs().max() < 1e-6
        assert not wav[item, T * HOP :].any()


def test_inference_gives_what_forward_gives(network):
    mel, lengths = make_mel(45, n_items=2), torch.tensor([45, 20])
    expected = whole(network, mel, lengths)
    assert network.infer(mel, lengths).sub(expected).abs().max() < 1e-6
    assert network.infer(mel).sub(whole(network, mel)).abs().max() < 1e-6
    assert network.infer(mel).dtype == torch.float32


def test_half_precision_is_close_and_mixed_closer_and_both_leave_the_network_alone(network):
    mel, before = make_mel(100), {name: t.clone() for name, t in network.state_dict().items()}
    exact = network.infer(mel)
    half, mixed = (network.for_inference(precision) for precision in ("bf16", "mixed"))
    noise = [(exact - rounded.infer(mel)).var() for rounded in (half, mixed)]
    assert 20 < 10 * torch.log10(exact.var() / noise[0]) < 60
    assert 0 < noise[1] < 0.8 * noise[0]
    assert len({p.dtype for p in mixed.ups.parameters()}) == 2
    assert half.infer(mel).dtype == torch.float32
    assert {p.dtype for p in half.resblocks.parameters()} == {torch.bfloat16}
    assert {p.dtype for p in half.conv_post.parameters()} == {torch.float32}
    assert all(torch.equal(t, before[name]) for name, t in network.state_dict().items())


def test_a_long_mel_needs_no_larger_tensors_than_a_short_one():
    network = make_network()
    sizes: list[int] = []
    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv1d | torch.nn.ConvTranspose1d):
            layer.register_forward_hook(lambda _, given, made: sizes.append(made.numel()))
    largest = []
    for n_frames in (200, 5000):
        sizes.clear()
        pieces = (torch.zeros(1, N_MELS, 50) for _ in range(n_frames // 50))
        assert sum(piece.shape[1] for piece in network.generate(pieces)) == n_frames * HOP
        largest.append(max(sizes))
    assert largest[1] <= 1.1 * largest[0]  # the last window may be a little longer


def test_padding_is_zeroed_at_every_rate_and_at_the_end_in_place():
    mask = torch.tensor([[[True, False, False]], [[True, True, True]]])
    signal = torch.ones(2, 1, 3)
    assert _cleared(signal, mask).tolist() == [[[1, 0, 0]], [[1, 1, 1]]]
    assert _cleared(torch.ones(2, 1, 6), _upsampled(mask, 2)).sum(dim=2).tolist() == [[2], [6]]
    assert signal.sum() == 6
    signal = torch.ones(2, 1, 6)
    assert _cleared(signal, _upsampled(1, 2)) is signal
    assert signal.tolist() == [[[1, 1, 1, 1, 0, 0]]] * 2
    assert _cleared(torch.ones(1, 1, 3), 0).sum() == 3
