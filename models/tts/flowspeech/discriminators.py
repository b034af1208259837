"""Discriminators of mels: each sees some bands, in patches; the mean mel is their condition."""

from models.base.adversarial import BandDiscriminator, Discriminators

_SHARES = ((0.0, 0.35), (0.25, 0.7), (0.6, 1.0))  # of the bands, from and to
_CHANNELS = 48
_LAYERS = (((5, 3), (2, 1)), ((5, 3), (2, 1)), ((3, 3), (2, 2)), ((3, 3), (1, 1)))


class MelDiscriminator(Discriminators):
    """One `BandDiscriminator` for each part of the bands; input: (B, 2, M, T), scaled."""

    def __init__(self, n_mels: int) -> None:
        parts = (slice(int(low * n_mels), int(high * n_mels)) for low, high in _SHARES)
        super().__init__(BandDiscriminator(part, _CHANNELS, _LAYERS, 0.0, 1.0) for part in parts)
