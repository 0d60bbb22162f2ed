"""Inner loops compiled for the CPU: the retrieval models without their states."""
