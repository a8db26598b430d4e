.PHONY: check lint site test

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
