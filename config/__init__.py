"""Keys of the configuration with their defaults, and the files that recipes start from."""
