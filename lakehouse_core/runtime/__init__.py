"""Bringing the product up: artifacts, Java, servers, supervision."""
