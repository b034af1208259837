"""The `model` section of WaveGlow."""

from dataclasses import dataclass

from config.checks import require_at_least, require_odd


@dataclass(frozen=True)
class WaveGlowConfig:
    """The `model` section; the values here are those of the paper and of NVIDIA's recipe."""

    flows: int = 12  # steps, each of a mixing and a coupling
    groups: int = 8  # samples that form the channels of one position, even
    early_every: int = 4  # after so many steps some channels leave the flow
    early_size: int = 2  # ... so many, even
    channels: int = 512  # of the layers of a coupling; 256 in NVIDIA's published LJSpeech model
    n_layers: int = 8  # of a coupling
    kernel_size: int = 3  # of these layers, odd
    train_sigma: float = 1.0  # standard deviation of the noise, in the likelihood
    # of inference
    sigma: float = 0.9  # standard deviation of the noise; lower is smoother
    denoiser_strength: float = 0.01  # of the removal of the vocoder's own hum, 0 (none) to 1

    def __post_init__(self) -> None:
        require_at_least(self, 1, "flows", "early_every", "channels", "n_layers")
        require_odd(self, "kernel_size")
        require_at_least(self, 2, "groups", "early_size")
        require_at_least(self, 0, "sigma")
        if not 0 <= self.denoiser_strength <= 1:
            raise ValueError(f"denoiser_strength is {self.denoiser_strength:g}, expected 0 to 1")
        for key in ("groups", "early_size"):
            if getattr(self, key) % 2:
                raise ValueError(f"{key} {getattr(self, key)} must be even, to be halved")
        if not self.train_sigma > 0:
            raise ValueError(f"train_sigma is {self.train_sigma:g}, expected more than 0")
        if self.channels_of(self.flows - 1) < 2:
            keys = ("flows", "groups", "early_every", "early_size")
            found = ", ".join(f"{key} {getattr(self, key)}" for key in keys)
            raise ValueError(f"{found}: no channels are left for the last step; expected 2 or more")

    def channels_of(self, step: int) -> int:
        """Returns the channels of a step, from 0."""
        return self.groups - step // self.early_every * self.early_size

    def leaves_before(self, step: int) -> bool:
        """Returns whether channels leave the flow before a step, from 0."""
        return step > 0 and step % self.early_every == 0

    @property
    def coupling_reach(self) -> int:
        """Positions on either side that a coupling depends on."""
        return (2**self.n_layers - 1) * (self.kernel_size // 2)
