"""Tests of how the product is brought up."""
