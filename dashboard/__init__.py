"""The dashboard and the report: claims, evidence and reproduced numbers side by side."""
