"""Gates and set-up of the tree itself; never imported by the product."""
