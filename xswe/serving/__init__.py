"""The local application: pages to look at corpora and models, and an interface that speaks as OpenAI's."""
