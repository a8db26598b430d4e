"""The local application: pages for corpora and models, and an OpenAI-compatible API."""
