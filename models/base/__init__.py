"""Shared by all models: task, interfaces, assets, registry, and the jointly trained aligner."""
