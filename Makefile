# Everything sets itself up: the first target that needs the environment makes it in .venv.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench browser docs golden screenshots clean help

help: ## Show the targets.
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml tools/find_python
	"$$(tools/find_python)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY) ## Explain a sample and draw its fusions.
	$(BIN)/hlofuse explain samples/cpu/gpt2_block/before.hlo --limit 12
	@mkdir -p out
	$(BIN)/hlofuse render samples/cpu/softmax/before.hlo --view both -o out/softmax.svg
	@echo "The picture is in out/softmax.svg; next, try:  $(BIN)/hlofuse why samples/cpu/gpt2_block/before.hlo --help"

browser: $(READY)
	tools/get_browser $(BIN)/python

test: $(READY) lint browser ## Lint, check types and import direction, run every test.
	$(BIN)/python -m pytest -n auto -rs

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## Measure parsing and replay against XLA's own.
	$(BIN)/python benchmarks/parse.py
	$(BIN)/python benchmarks/replay.py

docs: $(READY) ## Regenerate the documentation that is made from the catalogue.
	$(BIN)/python tools/generate_docs.py

screenshots: $(READY) browser ## Take the pictures of the explorer anew.
	$(BIN)/python tools/screenshots.py

golden: $(READY) ## Rewrite the golden outputs; read the difference before you commit it.
	$(BIN)/python -m pytest --update-golden

clean: ## Remove what the other targets made.
	rm -rf $(VENV) out build dist
