"""Verification: rules that hold what is asserted against the evidence for it."""
