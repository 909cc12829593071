"""Recommendations: which cure each table wants, what it would bring, and to whom."""
