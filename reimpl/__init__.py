"""The paper, re-implemented: feature maps, update rules, experiments."""
