"""What all models share: the task, the interfaces, the assets they come with, the registry."""
