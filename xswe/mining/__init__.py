"""Finding translations: neighbours, margins, sentence and phrase mining."""
