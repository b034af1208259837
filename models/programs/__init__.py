"""Programs that use models: server, books, export, distillation, benchmarks."""
