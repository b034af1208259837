"""What all models share: task, interfaces, assets, registry, and the jointly trained aligner."""
