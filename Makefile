# `make demo` and `make test` need Python 3.10 or newer and nothing else: they make .venv first.
# GPU machines choose their build of torch: make venv TORCH="torch --index-url URL"

TORCH ?= torch==2.13.0
BASE_PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && \
	echo $$python && break; done)

# The text of the demo, as it was typed: without this, make would expand its dollar signs.
override TEXT := $(value TEXT)
export TEXT

VOICE := ckpts/tts/demo
BUNDLED := $(VOICE)/bundled
FIRST_WORDS := Hello! This voice came with the repository. In a few minutes, you will hear another one.
# Written last by stage 3.
SPOKEN := $(VOICE)/result/metadata.jsonl
RECIPE := PYTHON="$$PWD/.venv/bin/python" sh egs/tts/FlowSpeech/run.sh
DEMO := $(RECIPE) --config egs/tts/FlowSpeech/exp_config_demo.json --name demo
# One thread for each of the test processes; they share the cores.
TEST := OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto

BENCH := OMP_NUM_THREADS=1 .venv/bin/python -m bins.benchmark
PRECISIONS := --compare precision=fp32 precision=bf16

.PHONY: venv demo test coverage test-slow test-page check bench bench-align bench-trust bench-corpus \
	bench-vocoder bench-speech bench-tacotron bench-gan bench-demo gpu

venv: .venv/.installed

.venv/.installed: setup.py constraints.txt
	@test -n "$(BASE_PYTHON)" || { echo "Python 3.10 or newer is needed: BASE_PYTHON=..." >&2; exit 1; }
	test -x .venv/bin/python || $(BASE_PYTHON) -m venv .venv
	.venv/bin/python -m pip install $(TORCH)
	@grep -v '^torch==' constraints.txt > .venv/constraints.txt
	.venv/bin/python -m pip install -c .venv/constraints.txt -e '.[dev]'
	@touch $@

# Speaks a sentence with the bundled voice, then fine-tunes it on five minutes of another speaker, or
# continues interrupted training, and synthesises ten sentences.
# With TEXT="...", synthesises that text; the voice is trained first if there is none.
demo: .venv/.installed
	@if [ -z "$$TEXT" ] || [ ! -e $(SPOKEN) ]; then \
		$(RECIPE) --stage 3 --infer_expt_dir egs/_voices/choir --infer_output_dir $(BUNDLED) \
			--infer_mode single --infer_text "$(FIRST_WORDS)" && \
		echo "The bundled voice: listen to $(BUNDLED)/single/text-0001.wav" && \
		set -- && \
		for step in $(VOICE)/checkpoints/step-*; do [ ! -e "$$step" ] || set -- --resume; done && \
		$(DEMO) --stage 1-3 "$$@" --infer_mode batch --infer_dataset LJSpeech-mini \
			--infer_testing_set test && \
		echo "The voice of the demo: listen to $(VOICE)/result/LJ002-0171.wav and the others there"; \
	fi
	@if [ -n "$$TEXT" ]; then \
		$(DEMO) --stage 3 --infer_mode single --infer_text "$$TEXT"; \
	fi

# The second pitch extractor, PESQ and the speaker encoder are optional: pip has to compile them or
# what they bring. So are the programs that speak with exported voices: not every machine has their
# wheels. Tests are skipped without them.
.venv/.optional: .venv/.installed
	-.venv/bin/python -m pip install -c .venv/constraints.txt -e '.[pyworld]'
	-.venv/bin/python -m pip install -c .venv/constraints.txt -e '.[eval]'
	-.venv/bin/python -m pip install -c .venv/constraints.txt --only-binary :all: -e '.[programs]'
	@touch $@

test: .venv/.optional
	$(TEST)

# Which lines of the source the tests run, in this process and the workers of pytest.
coverage: .venv/.optional
	$(TEST) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage

test-slow: .venv/.optional
	$(TEST) -m slow

# The pages of stage 4, of the server and of exported voices in Chromium, where it is installed.
test-page: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -m page -rs

# CUDA tests, the benchmark, and training of the bundled voice and vocoder, with the Python of a GPU
# machine: a call ends within ten minutes; repeat it until it succeeds. OUT must be kept between
# calls; OUT/results holds the results to copy. STORE=DIR: output of stage 1 in DIR/voice, DIR/vocoder.
OUT ?= ckpts/gpu
GPU_PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
gpu:
	$(GPU_PYTHON) -m tools.gpu.plan --out "$(OUT)" $(if $(STORE),--store "$(STORE)") $(FLAGS)

check: .venv/.installed
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy .
	find egs -name '*.sh' -exec .venv/bin/shellcheck -s sh -x {} +
	.venv/bin/hadolint Dockerfile

# Speed of every model, an hour of one core; then the tables of docs/benchmarks.md. One thread: with
# two, other processes on the machine change the figures.
bench: .venv/.installed
	$(BENCH) --mode speech,start-up --steps 6 --output docs/benchmarks/speech.json
	$(BENCH) --mode inference --model fastpitch,fastspeech2,freevgl,hifigan \
		--longest 100 --steps 8 $(PRECISIONS) --output docs/benchmarks/inference.json
	$(BENCH) --mode inference --model flowspeech \
		--longest 100 --steps 8 $(PRECISIONS) --output docs/benchmarks/inference_flowspeech.json
	$(BENCH) --mode inference --model flowspeech --precision bf16 --steps 8 \
		--compare model.steps=4 model.steps=8 --output docs/benchmarks/steps_flowspeech.json
	$(BENCH) --mode inference --model tacotron2 --longest 100 --steps 6 \
		--compare precision=fp32 precision=int8 --output docs/benchmarks/inference_tacotron2.json
	$(BENCH) --mode inference --model waveglow \
		--longest 20 --steps 2 $(PRECISIONS) --output docs/benchmarks/inference_waveglow.json
	$(BENCH) --mode inference --model fastpitch,fastspeech2,hifigan --precision bf16 \
		--steps 12 --compare lengths=new lengths=repeated --output docs/benchmarks/lengths.json
	$(BENCH) --mode training --model fastpitch,fastspeech2,freevgl,hifigan \
		--batch_size 1 --steps 8 $(PRECISIONS) --output docs/benchmarks/training.json
	$(BENCH) --mode training --model flowspeech \
		--batch_size 1 --steps 8 $(PRECISIONS) --output docs/benchmarks/training_flowspeech.json
	$(BENCH) --mode training --model tacotron2 \
		--batch_size 1 --steps 2 $(PRECISIONS) --output docs/benchmarks/training_tacotron2.json
	$(BENCH) --mode training --model waveglow \
		--batch_size 1 --steps 2 $(PRECISIONS) --output docs/benchmarks/training_waveglow.json
	$(BENCH) --mode training,inference --model fastspeech2,hifigan \
		--batch_size 1 --longest 100 --steps 6 \
		--compare threads=1 threads=2 --output docs/benchmarks/threads.json
	$(BENCH) --mode training --config egs/tts/FastSpeech2/exp_config_small.json --precision bf16 \
		--set train.synthetic_utterances=200 --set train.compile_buckets=2 --steps 12 --warm_up 12 \
		--compare train.compile=off train.compile=buckets --output docs/benchmarks/compilation.json
	.venv/bin/python -m tools.benchmarks.page

# Errors of the aligners against known boundaries; four CPU minutes.
bench-align: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.alignment

# How many wrong transcripts the aligner hmm finds: in the demo's clips, or CORPUS=DIR FORMAT=vctk.
bench-trust: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.mislabelled $(CORPUS) \
		$(if $(FORMAT),--format $(FORMAT))

# Recall and errors of arion corpus, from clips joined to a long recording: the demo's, or CORPUS=DIR.
bench-corpus: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.long_recordings $(or $(CORPUS),egs/_demo/LJSpeech-mini)

# Speed of HiFi-GAN compared with a plain implementation.
bench-vocoder: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.vocoder

# Speed from phones to sound compared with plain implementations of FastSpeech 2 and HiFi-GAN.
bench-speech: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.speech

# Speed of Tacotron 2's decoder compared with a plain implementation.
bench-tacotron: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.tacotron_decoding

# One training step of a vocoder compared with a plain one; some minutes, 11 GB of memory.
bench-gan: .venv/.installed
	OMP_NUM_THREADS=1 .venv/bin/python -m tools.benchmarks.gan_step

# Word error of the demo's ten sentences and of their recordings.
bench-demo: $(SPOKEN)
	$(DEMO) --stage 4 --metrics wer --recordings egs/_demo/LJSpeech-mini

$(SPOKEN):
	$(MAKE) demo
