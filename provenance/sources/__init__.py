"""One module a source; each parses the bytes or text of that source and fetches nothing."""
