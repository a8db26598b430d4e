.PHONY: bench check generated golden hooks lint mutations release site test

check: lint test

lint:
	ruff check .
	ruff format --check .
	mypy

test:
	HF_HUB_OFFLINE=1 XSWE_PROGRESS=0 python -m pytest

# What is generated from the code: stubs, the settings of the command line, tables of the reference.
generated:
	python tools/stubs.py
	python tools/reference.py

# The documentation as a site in build/site; it needs no network, and neither do its pages.
site:
	NO_MKDOCS_2_WARNING=1 python -m mkdocs --quiet build

# make release VERSION=0.3.0: version, changelog, wheel and sdist, both tried in clean environments of every Python here.
release:
	python tools/release.py $(VERSION)

# Hooks that check a change before it is committed or pushed; needs pre-commit.
hooks:
	pre-commit install --hook-type pre-commit --hook-type pre-push

# Whether the documented commands still write the bytes that were recorded (eight minutes; needs XSWE_DATA).
golden:
	python -m eval.report.golden check=eval/results/golden.json

# What the tests notice of 100 small mistakes, and what the structure amounts to (an hour and more).
mutations:
	python -m eval.experiments.mutate output=eval/results/mutations.json
	python -m eval.report.house

# The speed against another checkout's, in turns: make bench BEFORE=../xswe-before (ten minutes on an idle machine).
bench:
	python -m eval.bench.before_after before=$(BEFORE) output=before_after.json
