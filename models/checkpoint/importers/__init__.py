"""Importers of checkpoints of other projects: each module without a leading `_` reads one kind.

They are found by file name (models/checkpoint/foreign.py). Modules with a leading `_` are shared.
"""
