"""Identity, roles, grants and masks: who may run which text, on every engine alike."""
