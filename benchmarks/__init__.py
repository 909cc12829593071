"""Figures of the design, each measured side by side in one run."""
