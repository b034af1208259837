"""Sections of a configuration that make a vocoder train in no time."""

TINY_HIFIGAN = {
    "generator": {
        "resblock": "2",
        "upsample_rates": [16, 16],
        "upsample_kernel_sizes": [16, 16],
        "upsample_initial_channel": 8,
        "resblock_kernel_sizes": [3],
        "resblock_dilation_sizes": [[1]],
    },
    "discriminator": {
        "periods": [3],
        "period_channels": [2, 2, 2, 2, 2],
        "scales": 1,
        "scale_channels": [4, 16, 16, 16, 16, 16, 16],
    },
}
TINY_FREEVGL = {"channels": 16, "n_layers": 1, "iterations": 2, "band_channels": 2}
TWO_UPDATES = {
    "batch_size": 2,
    "cut_mel_frame": 16,
    "max_steps": 2,
    "valid_samples": 0,
    "tracker": "none",
    "dataloader": {"num_worker": 0},
}
