"""Finding translations: neighbours, margins, selection, calibration, and the formats they are written in."""
