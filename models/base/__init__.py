"""Shared by all models: task, model, assets, registry; what acoustic models share."""
