"""Logged data: data sets, what a policy would return, training from data."""
