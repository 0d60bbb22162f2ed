"""What is known about papers, who said so, and since when: models, ledger, index, verdicts."""
