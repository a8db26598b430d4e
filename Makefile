.PHONY: check lint release site test

check: lint test

lint:
	ruff check .
	ruff format --check .
	mypy

test:
	HF_HUB_OFFLINE=1 XSWE_PROGRESS=0 python -m pytest

# The documentation as a site in build/site; it needs no network, and neither do its pages.
site:
	NO_MKDOCS_2_WARNING=1 python -m mkdocs --quiet build

# make release VERSION=0.2.0: version, changelog, wheel and sdist, both tried in clean environments of every Python here.
release:
	python tools/release.py $(VERSION)
