"""Feature maps, update rules, models, and the experiments that measure the paper's claims."""
