# Every target sets up what it needs. `make demo` is the place to start.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOGS := examples/logs
WORKFLOWS := $(wildcard .github/workflows/*.yml) $(filter-out %/gitlab-ci.yml,$(wildcard examples/workflows/*.yml))
ACTIONS := action.yml comment/action.yml record/action.yml site/action.yml
SHOWN := $(LOGS)/healthy.jsonl $(LOGS)/loss_spike.trainer_state.json $(LOGS)/overfitting.jsonl

.PHONY: setup demo test test-fast check bench site format clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	@mkdir -p out
	@echo "--- a real training, made now: a small network on scikit-learn's digits"
	$(BIN)/python examples/generate_logs.py --only healthy_digits --out out/logs
	$(BIN)/trainscope analyze out/logs --fail-on never
	@echo "--- logs that real trainings wrote earlier: one healthy, one with a loss spike, one overfitting"
	$(BIN)/trainscope analyze $(SHOWN) --fail-on never
	@echo "--- a small GPT with a bad batch and a learning-rate drift, recorded layer by layer while it trains"
	@rm -rf out/runs/gpt2_spike_demo
	$(BIN)/python examples/gpt2_spike_demo.py --run-dir out/runs
	@echo "--- why it broke: its case file, and the plan to train again"
	$(BIN)/trainscope report --run out/runs/gpt2_spike_demo | sed '/^## How the weights moved/,$$d'
	$(BIN)/trainscope report --run out/runs/gpt2_spike_demo --format html --out out/case.html
	$(BIN)/trainscope replay --run out/runs/gpt2_spike_demo --out out/replay_config.json
	@echo "--- every example in one HTML report"
	$(BIN)/trainscope analyze $(LOGS) --fail-on never --output html --out out/report.html
	@echo "Open out/report.html and out/case.html in a browser. To judge your own log: $(BIN)/trainscope analyze PATH"

# The tests start hundreds of processes; where no bytecode may be kept, each would compile the package anew.
test test-fast: export PYTHONDONTWRITEBYTECODE =

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/build_docs.py --check
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions $(ACTIONS)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.gitlab-ci examples/workflows/gitlab-ci.yml
	$(BIN)/zizmor --offline --strict-collection --pedantic --no-progress --quiet $(ACTIONS) $(WORKFLOWS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/actionlint $(WORKFLOWS)
	$(BIN)/shellcheck .ci/run examples/workflows/gate.sh

bench: setup
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/planted.py --replicas 40
	$(BIN)/python bench/false_alarms.py --replicas 40
	$(BIN)/python bench/detectors/run.py
	$(BIN)/python bench/smoke_overhead.py
	$(BIN)/python bench/recorder_overhead.py
	$(BIN)/python bench/site.py

site: setup
	$(BIN)/trainscope site build $(LOGS) --out out/site --prune
	@echo "Open out/site/index.html in a browser."

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/build_docs.py

clean:
	rm -rf $(VENV) out
