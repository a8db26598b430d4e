"""Teachers: sentence encoders that give token states and sentence vectors."""
