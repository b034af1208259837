import torch

from tests.models.tts.plain_fastspeech2 import N_SYMBOLS, PlainFastSpeech2
from tools.benchmarks.speech import imported


@torch.no_grad()
def test_the_imported_network_predicts_the_mel_of_the_plain_one():
    torch.manual_seed(0)
    plain = PlainFastSpeech2().eval()
    ids = torch.randint(1, N_SYMBOLS, (1, 9))
    ours = imported(plain).infer(ids, torch.tensor([9])).mel
    torch.testing.assert_close(ours, plain(ids), rtol=0, atol=1e-4)
