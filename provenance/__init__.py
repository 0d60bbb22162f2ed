"""Where facts come from, and whether they hold: pure checks over records and evidence."""
