.PHONY: check lint test

check: lint test

lint:
	ruff check .
	ruff format --check .
	mypy

test:
	HF_HUB_OFFLINE=1 XSWE_PROGRESS=0 python -m pytest
