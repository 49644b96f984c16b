# Everything sets itself up: the first target that needs the environment makes it in .venv.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON = $(shell tools/find_python)
COMPILED := .compiled
JAX := .jax

# Two targets at a time: types are checked while the browser is installed.
MAKEFLAGS += --jobs=2
# Tests start Python often: compiled once, modules need not be compiled again by each.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint style types imports words size mutate bench browser compiled site pages cartpole cartpole-dumps golden screenshots corpus clean help

help: ## Show the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml tools/find_python
	"$(PYTHON)" -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[dev]' || $(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

demo: $(READY) ## Explain a sample and draw its fusions.
	$(BIN)/hlofuse explain samples/tutorial/slow
	@mkdir -p out
	$(BIN)/hlofuse render samples/cpu/softmax/before.hlo --view both -o out/softmax.svg
	@echo "The picture is in out/softmax.svg. Every decision about the program in one page:"
	@echo "  $(BIN)/hlofuse explore samples/tutorial/slow -o out/loss.html"

browser: $(READY)
	tools/get_browser $(BIN)/python

test: $(READY) lint browser ## Lint, check types and import direction, run every test.
	$(BIN)/python -m pytest -n auto --dist worksteal -rs

lint: style types imports words size ## Check style, types, import direction and the size budget.

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy --num-workers 2

imports: $(READY)
	$(BIN)/lint-imports
	$(BIN)/python tools/lint_imports.py

words: $(READY)
	$(BIN)/python tools/lint_words.py

size: $(READY) ## Print the figures of the size budget; fail above it.
	$(BIN)/python tools/size.py

# make mutate COUNT=50 SEED=7 IN=hlofuse/account
COUNT := 200
LEAST := 85
mutate: $(READY) ## Edit the arithmetic of answers at random; fail where the tests notice too few of the edits.
	$(BIN)/python tools/mutate.py $(IN) --count $(COUNT) $(if $(SEED),--seed $(SEED)) --least $(LEAST)

compiled: browser ## Install hlofuse with its hot modules compiled (docs/compiled.md), run every test against that.
	"$(PYTHON)" -m venv $(COMPILED)
	HATCH_BUILD_HOOKS_ENABLE=1 $(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	PYTHONSAFEPATH=1 $(COMPILED)/bin/hlofuse --version | grep compiled
	PYTHONSAFEPATH=1 $(COMPILED)/bin/python -m pytest -n auto --dist worksteal -rs

bench: $(READY) ## Measure parsing and replay against XLA's own.
	$(BIN)/python benchmarks/parse.py
	$(BIN)/python benchmarks/replay.py

site: $(READY) ## Build the documentation as a site in out/site; a broken link fails.
	$(BIN)/python tools/generate_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open out/site/index.html"

pages: $(READY) ## Run the commands that pages show, and write what they print into the pages.
	$(BIN)/python tools/run_pages.py --write

cartpole: $(READY) ## Regenerate the Cart-pole study's tables and picture from its dumps.
	$(BIN)/python tools/cartpole.py
	@echo "The study is in docs/cartpole.md"

cartpole-dumps: $(JAX)/now/.ready $(JAX)/legacy/.ready ## Compile the study's programs again (installs two JAX releases).
	$(JAX)/now/bin/python tools/cartpole_dumps.py cpu
	$(JAX)/now/bin/python tools/cartpole_dumps.py gpu
	$(JAX)/legacy/bin/python tools/cartpole_dumps.py gpu-legacy

$(JAX)/now/.ready: PACKAGES = jax==0.11.1 jaxlib==0.11.1 "jax-cuda12-plugin[with-cuda]==0.11.1"
$(JAX)/legacy/.ready: PACKAGES = jax==0.4.35 jaxlib==0.4.35 jax-cuda12-plugin==0.4.35 jax-cuda12-pjrt==0.4.35
$(JAX)/%/.ready: # JAX 0.11 wants Python 3.12 or newer, 0.4.35 at most 3.13
	"$(PYTHON)" -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

screenshots: $(READY) browser ## Take the pictures of the documentation again.
	$(BIN)/python tools/screenshots.py

golden: $(READY) ## Rewrite the golden outputs; read the difference before you commit it.
	$(BIN)/python -m pytest --update-golden

# make corpus CORPUS=gpu-h100_sxm RELEASE=0.12.0.1
CORPUS := cpu
RELEASE := 0.11.1
LIBRARIES := $(if $(findstring -libraries,$(CORPUS))$(findstring -held-out,$(CORPUS)),-libraries)
ASKED := $(JAX)/$(firstword $(subst -, ,$(CORPUS)))$(LIBRARIES)-$(RELEASE)

$(JAX)/cpu-$(RELEASE)/.ready: PACKAGES = jax==$(RELEASE)
$(JAX)/gpu-$(RELEASE)/.ready: PACKAGES = jax==$(RELEASE) "jax-cuda12-plugin[with-cuda]==$(RELEASE)"
$(JAX)/gpu-libraries-$(RELEASE)/.ready: PACKAGES = jax==$(RELEASE) "jax-cuda12-plugin[with-cuda]==$(RELEASE)" -r tools/corpus/libraries.txt
$(JAX)/tpu-$(RELEASE)/.ready: PACKAGES = "jax[tpu]==$(RELEASE)"

corpus: $(READY) $(ASKED)/.ready ## Compile a reference corpus with XLA, verify our replay on it.
	$(BIN)/python tools/make_corpus.py $(CORPUS) --python $(ASKED)/bin/python -o out/corpus/$(RELEASE)

clean: ## Remove what the other targets made.
	rm -rf $(VENV) $(COMPILED) $(JAX) out build dist
