"""Shared by all models: task, model, assets, registry, and the jointly trained aligner."""
