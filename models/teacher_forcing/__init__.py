"""Voices on features of recordings: the mels that they predict, the durations that they find."""
